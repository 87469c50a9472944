"""Kinds of questions about our hospital: wordings, the query that gives the answer, and code that gets it with the tools."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of question. Its texts have slots, such as ``$patient``, that are filled with values.

    ``slots`` is a query: each of its rows has the values of one possible question, in columns that are named as the slots are.
    The answer is the first value that the query ``sql`` returns; ``code`` is never used to compute it.
    """

    name: str
    wordings: tuple[str, ...]
    slots: str
    sql: str
    code: str

    def question(self, wording: int, values: dict[str, str]) -> str:
        """Fill the wording of this number with these values; after the last wording, the numbers begin again with the first."""
        return Template(self.wordings[wording % len(self.wordings)]).substitute(values)

    def query(self, values: dict[str, str]) -> str:
        """Fill ``sql`` with these values: the result is the query that computes the answer."""
        return Template(self.sql).substitute({name: value.replace("'", "''") for name, value in values.items()})

    def script(self, values: dict[str, str]) -> str:
        """Fill ``code`` with these values: the result is code that answers the question with the tools."""
        return Template(self.code).substitute(values)


_STAY_OF = "SELECT HADM_ID FROM admissions WHERE SUBJECT_ID = $patient ORDER BY ADMITTIME"
_LABS = (
    "SELECT DISTINCT e.SUBJECT_ID AS patient, d.LABEL AS lab, substr(e.CHARTTIME, 1, 4) AS year "
    "FROM labevents e JOIN d_labitems d USING (ITEMID)"
)
_OF_LAB = "FROM labevents WHERE SUBJECT_ID = $patient AND ITEMID = (SELECT ITEMID FROM d_labitems WHERE LABEL = '$lab')"
_LAB_CODE = """items = FilterDB(LoadDB('d_labitems'), 'LABEL=$lab')
item = GetValue(items, 'ITEMID')
events = FilterDB(LoadDB('labevents'), 'SUBJECT_ID=$patient||ITEMID={}'.format(item))
"""
_PRESCRIBED = "SELECT DISTINCT SUBJECT_ID AS patient, DRUG AS drug FROM prescriptions"
_LAST_STAY_CODE = """admissions = LoadDB('admissions')
stay = FilterDB(admissions, 'SUBJECT_ID=$patient||max(ADMITTIME)')
"""
_PATIENTS = "SELECT SUBJECT_ID AS patient FROM patients"
_CHARTED = (
    "SELECT DISTINCT e.SUBJECT_ID AS patient, d.LABEL AS item FROM {} e JOIN d_items d USING (ITEMID) WHERE d.LINKSTO = '{}'"
)
_ITEM_CODE = """items = FilterDB(LoadDB('d_items'), 'LABEL=$item')
item = GetValue(items, 'ITEMID')
"""

KINDS: tuple[Kind, ...] = (
    Kind(
        "last lab value",
        (
            "what was the last measured $lab of patient $patient?",
            "tell me the value of the latest $lab test of patient $patient",
            "patient $patient: how high was $lab when it was last measured?",
        ),
        f"SELECT patient, lab FROM ({_LABS})",
        f"SELECT VALUENUM {_OF_LAB} ORDER BY CHARTTIME DESC LIMIT 1",
        _LAB_CODE + "last = FilterDB(events, 'max(CHARTTIME)')\nanswer = GetValue(last, 'VALUENUM')",
    ),
    Kind(
        "number of lab tests",
        (
            "how many times was $lab measured for patient $patient?",
            "count the $lab tests of patient $patient",
            "tell me how often patient $patient had a $lab test",
        ),
        f"SELECT patient, lab FROM ({_LABS})",
        f"SELECT count(*) {_OF_LAB}",
        _LAB_CODE + "answer = len(events)",
    ),
    Kind(
        "highest lab value in a year",
        (
            "what was the highest $lab of patient $patient in $year?",
            "tell me the maximum $lab value that patient $patient had in $year",
            "in $year, how high did $lab of patient $patient get at most?",
        ),
        _LABS,
        f"SELECT max(VALUENUM) {_OF_LAB} AND CHARTTIME LIKE '$year%'",
        _LAB_CODE + "events = FilterDB(events, 'CHARTTIME>=$year-01-01 00:00:00||CHARTTIME<=$year-12-31 23:59:59')\n"
        "answer = GetValue(events, 'VALUENUM, max')",
    ),
    Kind(
        "mean lab value",
        (
            "what is the mean $lab of patient $patient over all measurements?",
            "compute the average $lab value of patient $patient",
            "on average, how high was the $lab of patient $patient?",
        ),
        f"SELECT patient, lab FROM ({_LABS})",
        f"SELECT avg(VALUENUM) {_OF_LAB}",
        _LAB_CODE + "answer = GetValue(events, 'VALUENUM, mean')",
    ),
    Kind(
        "prescribed or not",
        (
            "was $drug ever prescribed to patient $patient?",
            "has patient $patient got a prescription of $drug?",
            "is there any prescription of $drug for patient $patient?",
        ),
        "SELECT p.SUBJECT_ID AS patient, d.DRUG AS drug FROM patients p CROSS JOIN (SELECT DISTINCT DRUG FROM prescriptions) d",
        "SELECT EXISTS (SELECT 1 FROM prescriptions WHERE SUBJECT_ID = $patient AND DRUG = '$drug')",
        "rows = SQLInterpreter(\"SELECT count(*) FROM prescriptions WHERE SUBJECT_ID = $patient AND DRUG = '$drug'\")\n"
        "answer = 1 if rows[0][0] > 0 else 0",
    ),
    Kind(
        "last dose",
        (
            "what dose of $drug was last prescribed to patient $patient?",
            "tell me the latest dose of $drug for patient $patient",
            "how much $drug did the last prescription for patient $patient say?",
        ),
        _PRESCRIBED,
        "SELECT DOSE_VAL_RX FROM prescriptions WHERE SUBJECT_ID = $patient AND DRUG = '$drug' ORDER BY STARTDATE DESC LIMIT 1",
        "given = FilterDB(LoadDB('prescriptions'), 'SUBJECT_ID=$patient||DRUG=$drug||max(STARTDATE)')\n"
        "answer = GetValue(given, 'DOSE_VAL_RX')",
    ),
    Kind(
        "route",
        (
            "by which route was $drug first given to patient $patient?",
            "how did patient $patient take $drug the first time?",
            "tell me the route of the first prescription of $drug for patient $patient",
        ),
        _PRESCRIBED,
        "SELECT ROUTE FROM prescriptions WHERE SUBJECT_ID = $patient AND DRUG = '$drug' ORDER BY STARTDATE LIMIT 1",
        "given = FilterDB(LoadDB('prescriptions'), 'SUBJECT_ID=$patient||DRUG=$drug||min(STARTDATE)')\n"
        "answer = GetValue(given, 'ROUTE')",
    ),
    Kind(
        "patients on a drug",
        (
            "how many patients were prescribed $drug in $year?",
            "count the patients who got $drug in $year",
            "in $year, to how many patients was $drug given?",
        ),
        "SELECT DISTINCT DRUG AS drug, substr(STARTDATE, 1, 4) AS year FROM prescriptions",
        "SELECT count(DISTINCT SUBJECT_ID) FROM prescriptions WHERE DRUG = '$drug' AND STARTDATE LIKE '$year%'",
        "given = FilterDB(LoadDB('prescriptions'), 'DRUG=$drug||STARTDATE>=$year-01-01 00:00:00||"
        "STARTDATE<=$year-12-31 23:59:59')\nanswer = len(set(given['SUBJECT_ID']))",
    ),
    Kind(
        "cost of the last stay",
        (
            "what did the last hospital stay of patient $patient cost?",
            "tell me the total cost of the latest visit of patient $patient",
            "how much was charged for the last admission of patient $patient?",
        ),
        _PATIENTS,
        f"SELECT sum(COST) FROM cost WHERE HADM_ID = ({_STAY_OF} DESC LIMIT 1)",
        _LAST_STAY_CODE + "hadm = GetValue(stay, 'HADM_ID')\n"
        "charged = FilterDB(LoadDB('cost'), 'HADM_ID={}'.format(hadm))\nanswer = GetValue(charged, 'COST, sum')",
    ),
    Kind(
        "days of the last stay",
        (
            "how many full days did the last hospital stay of patient $patient take?",
            "tell me the length of the latest visit of patient $patient in whole days",
            "for how many whole days was patient $patient in hospital the last time?",
        ),
        "SELECT SUBJECT_ID AS patient FROM admissions GROUP BY SUBJECT_ID HAVING count(*) = count(DISCHTIME)",
        "SELECT CAST(julianday(DISCHTIME) - julianday(ADMITTIME) + 1e-6 AS INTEGER) FROM admissions "
        "WHERE SUBJECT_ID = $patient ORDER BY ADMITTIME DESC LIMIT 1",
        "import datetime\n" + _LAST_STAY_CODE + "came = datetime.datetime.fromisoformat(GetValue(stay, 'ADMITTIME'))\n"
        "left = datetime.datetime.fromisoformat(GetValue(stay, 'DISCHTIME'))\nanswer = (left - came).days",
    ),
    Kind(
        "insurance",
        (
            "which insurance did patient $patient have at the last hospital stay?",
            "tell me the insurance of patient $patient at the latest visit",
            "who insured patient $patient at the last admission?",
        ),
        _PATIENTS,
        "SELECT INSURANCE FROM admissions WHERE SUBJECT_ID = $patient ORDER BY ADMITTIME DESC LIMIT 1",
        _LAST_STAY_CODE + "answer = GetValue(stay, 'INSURANCE')",
    ),
    Kind(
        "first admission",
        (
            "of what type was the first hospital stay of patient $patient?",
            "tell me the admission type of the first visit of patient $patient",
            "how urgent was the first admission of patient $patient?",
        ),
        _PATIENTS,
        "SELECT ADMISSION_TYPE FROM admissions WHERE SUBJECT_ID = $patient ORDER BY ADMITTIME LIMIT 1",
        "admissions = LoadDB('admissions')\nstay = FilterDB(admissions, 'SUBJECT_ID=$patient||min(ADMITTIME)')\n"
        "answer = GetValue(stay, 'ADMISSION_TYPE')",
    ),
    Kind(
        "visits since",
        (
            "how many hospital stays of patient $patient began since $year?",
            "count the visits of patient $patient since $year",
            "since $year, how often was patient $patient admitted?",
        ),
        "SELECT DISTINCT SUBJECT_ID AS patient, substr(ADMITTIME, 1, 4) AS year FROM admissions",
        "SELECT count(*) FROM admissions WHERE SUBJECT_ID = $patient AND ADMITTIME >= '$year'",
        "stays = FilterDB(LoadDB('admissions'), 'SUBJECT_ID=$patient||ADMITTIME>=$year-01-01 00:00:00')\nanswer = len(stays)",
    ),
    Kind(
        "time of a diagnosis",
        (
            "when was patient $patient first diagnosed with $diagnosis?",
            "tell me the time of the first diagnosis of $diagnosis in patient $patient",
            "since when has $diagnosis of patient $patient been known?",
        ),
        "SELECT DISTINCT e.SUBJECT_ID AS patient, d.SHORT_TITLE AS diagnosis "
        "FROM diagnoses_icd e JOIN d_icd_diagnoses d USING (ICD9_CODE)",
        "SELECT min(CHARTTIME) FROM diagnoses_icd WHERE SUBJECT_ID = $patient "
        "AND ICD9_CODE = (SELECT ICD9_CODE FROM d_icd_diagnoses WHERE SHORT_TITLE = '$diagnosis')",
        "code = GetValue(FilterDB(LoadDB('d_icd_diagnoses'), 'SHORT_TITLE=$diagnosis'), 'ICD9_CODE')\n"
        "found = FilterDB(LoadDB('diagnoses_icd'), 'SUBJECT_ID=$patient||ICD9_CODE={}'.format(code))\n"
        "answer = min(found['CHARTTIME'])",
    ),
    Kind(
        "patients with a diagnosis",
        (
            "how many patients were diagnosed with $diagnosis in $year?",
            "count the patients whose diagnosis in $year was $diagnosis",
            "in $year, how many people had $diagnosis?",
        ),
        "SELECT DISTINCT d.SHORT_TITLE AS diagnosis, substr(e.CHARTTIME, 1, 4) AS year "
        "FROM diagnoses_icd e JOIN d_icd_diagnoses d USING (ICD9_CODE)",
        "SELECT count(DISTINCT SUBJECT_ID) FROM diagnoses_icd WHERE CHARTTIME LIKE '$year%' "
        "AND ICD9_CODE = (SELECT ICD9_CODE FROM d_icd_diagnoses WHERE SHORT_TITLE = '$diagnosis')",
        'rows = SQLInterpreter("SELECT count(DISTINCT e.SUBJECT_ID) FROM diagnoses_icd e JOIN d_icd_diagnoses d '
        "ON e.ICD9_CODE = d.ICD9_CODE WHERE d.SHORT_TITLE = '$diagnosis' AND e.CHARTTIME LIKE '$year%'\")\n"
        "answer = rows[0][0]",
    ),
    Kind(
        "cost of a procedure",
        (
            "what does $procedure cost on average?",
            "tell me the mean cost of the procedure $procedure",
            "how much is charged for $procedure on average?",
        ),
        "SELECT DISTINCT d.SHORT_TITLE AS procedure FROM procedures_icd e JOIN d_icd_procedures d USING (ICD9_CODE)",
        "SELECT avg(c.COST) FROM cost c JOIN procedures_icd e ON c.EVENT_ID = e.ROW_ID AND c.EVENT_TYPE = 'procedures_icd' "
        "WHERE e.ICD9_CODE = (SELECT ICD9_CODE FROM d_icd_procedures WHERE SHORT_TITLE = '$procedure')",
        "code = GetValue(FilterDB(LoadDB('d_icd_procedures'), 'SHORT_TITLE=$procedure'), 'ICD9_CODE')\n"
        "done = FilterDB(LoadDB('procedures_icd'), 'ICD9_CODE={}'.format(code))\n"
        "ids = [str(row) for row in done['ROW_ID']]\n"
        "cost = FilterDB(LoadDB('cost'), 'EVENT_TYPE=procedures_icd||EVENT_ID in [{}]'.format(', '.join(ids)))\n"
        "answer = GetValue(cost, 'COST, mean')",
    ),
    Kind(
        "mean of a vital sign",
        (
            "what was the average $item of patient $patient?",
            "tell me the mean $item of patient $patient in intensive care",
            "how high was the $item of patient $patient on average?",
        ),
        _CHARTED.format("chartevents", "chartevents"),
        "SELECT avg(VALUENUM) FROM chartevents WHERE SUBJECT_ID = $patient "
        "AND ITEMID = (SELECT ITEMID FROM d_items WHERE LABEL = '$item')",
        _ITEM_CODE + "charted = FilterDB(LoadDB('chartevents'), 'SUBJECT_ID=$patient||ITEMID={}'.format(item))\n"
        "answer = GetValue(charted, 'VALUENUM, mean')",
    ),
    Kind(
        "sum of an output",
        (
            "what was the total $item of patient $patient?",
            "add up all $item amounts of patient $patient",
            "tell me how much $item patient $patient had in total",
        ),
        _CHARTED.format("outputevents", "outputevents"),
        "SELECT sum(VALUE) FROM outputevents WHERE SUBJECT_ID = $patient "
        "AND ITEMID = (SELECT ITEMID FROM d_items WHERE LABEL = '$item')",
        _ITEM_CODE + "out = FilterDB(LoadDB('outputevents'), 'SUBJECT_ID=$patient||ITEMID={}'.format(item))\n"
        "answer = GetValue(out, 'VALUE, sum')",
    ),
    Kind(
        "first care unit",
        (
            "in which care unit did the first intensive care stay of patient $patient begin?",
            "tell me the first care unit of patient $patient",
            "to which intensive care unit did patient $patient come first?",
        ),
        "SELECT DISTINCT SUBJECT_ID AS patient FROM icustays",
        "SELECT FIRST_CAREUNIT FROM icustays WHERE SUBJECT_ID = $patient ORDER BY INTIME LIMIT 1",
        "stay = FilterDB(LoadDB('icustays'), 'SUBJECT_ID=$patient||min(INTIME)')\nanswer = GetValue(stay, 'FIRST_CAREUNIT')",
    ),
    Kind(
        "organism",
        (
            "which organism was found in the first $specimen of patient $patient?",
            "tell me the organism in the earliest $specimen sample of patient $patient",
            "what grew in the first $specimen of patient $patient?",
        ),
        "SELECT DISTINCT SUBJECT_ID AS patient, SPEC_TYPE_DESC AS specimen FROM microbiologyevents",
        "SELECT ORG_NAME FROM microbiologyevents WHERE SUBJECT_ID = $patient AND SPEC_TYPE_DESC = '$specimen' "
        "ORDER BY CHARTTIME LIMIT 1",
        "found = FilterDB(LoadDB('microbiologyevents'), 'SUBJECT_ID=$patient||SPEC_TYPE_DESC=$specimen||min(CHARTTIME)')\n"
        "answer = GetValue(found, 'ORG_NAME')",
    ),
)
