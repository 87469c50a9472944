"""The tables of the records, and the diagnoses, procedures, drugs and measurements that occur in our hospital.

The tables are named as in the MIMIC-III part of EHRSQL, which EHRAgent and the paper use; the numbers are invented.
"""

from __future__ import annotations

NOW = "2105-12-31 23:59:00"  # the present of the records: EHRSQL's, which its answers were computed with
_STAY = "SUBJECT_ID HADM_ID ICUSTAY_ID"
TABLES: dict[str, tuple[str, ...]] = {
    name: tuple(f"ROW_ID {columns}".split())
    for name, columns in {
        "admissions": "SUBJECT_ID HADM_ID ADMITTIME DISCHTIME ADMISSION_TYPE ADMISSION_LOCATION DISCHARGE_LOCATION INSURANCE "
        "LANGUAGE MARITAL_STATUS ETHNICITY AGE",
        "chartevents": f"{_STAY} ITEMID CHARTTIME VALUENUM VALUEUOM",
        "cost": "SUBJECT_ID HADM_ID EVENT_TYPE EVENT_ID CHARGETIME COST",
        "d_icd_diagnoses": "ICD9_CODE SHORT_TITLE LONG_TITLE",
        "d_icd_procedures": "ICD9_CODE SHORT_TITLE LONG_TITLE",
        "d_items": "ITEMID LABEL LINKSTO",
        "d_labitems": "ITEMID LABEL",
        "diagnoses_icd": "SUBJECT_ID HADM_ID ICD9_CODE CHARTTIME",
        "icustays": f"{_STAY} FIRST_CAREUNIT LAST_CAREUNIT FIRST_WARDID LAST_WARDID INTIME OUTTIME",
        "inputevents_cv": f"{_STAY} CHARTTIME ITEMID AMOUNT",
        "labevents": "SUBJECT_ID HADM_ID ITEMID CHARTTIME VALUENUM VALUEUOM",
        "microbiologyevents": "SUBJECT_ID HADM_ID CHARTTIME SPEC_TYPE_DESC ORG_NAME",
        "outputevents": f"{_STAY} CHARTTIME ITEMID VALUE",
        "patients": "SUBJECT_ID GENDER DOB DOD",
        "prescriptions": "SUBJECT_ID HADM_ID STARTDATE ENDDATE DRUG DOSE_VAL_RX DOSE_UNIT_RX ROUTE",
        "procedures_icd": "SUBJECT_ID HADM_ID ICD9_CODE CHARTTIME",
        "transfers": f"{_STAY} EVENTTYPE CAREUNIT WARDID INTIME OUTTIME",
    }.items()
}
DIAGNOSES = {  # code: short and long title
    "4019": ("hypertension nos", "unspecified essential hypertension"),
    "25000": ("dmii wo cmp nt st uncntr", "type ii diabetes without complication"),
    "4280": ("chf nos", "congestive heart failure, unspecified"),
    "42731": ("atrial fibrillation", "atrial fibrillation"),
    "41401": ("crnry athrscl natve vssl", "coronary atherosclerosis of native coronary artery"),
    "5849": ("acute kidney failure nos", "acute kidney failure, unspecified"),
    "51881": ("acute respiratry failure", "acute respiratory failure"),
    "5990": ("urin tract infection nos", "urinary tract infection, site not specified"),
    "486": ("pneumonia, organism nos", "pneumonia, organism unspecified"),
    "2724": ("hyperlipidemia nec/nos", "other and unspecified hyperlipidemia"),
    "53081": ("esophageal reflux", "esophageal reflux"),
    "2859": ("anemia nos", "anemia, unspecified"),
    "2449": ("hypothyroidism nos", "unspecified acquired hypothyroidism"),
    "0389": ("septicemia nos", "unspecified septicemia"),
    "99592": ("severe sepsis", "severe sepsis"),
    "2762": ("acidosis", "acidosis"),
    "2761": ("hyposmolality", "hyposmolality and hyponatremia"),
    "311": ("depressive disorder nec", "depressive disorder, not elsewhere classified"),
    "496": ("chr airway obstruct nec", "chronic airway obstruction, not elsewhere classified"),
    "40390": ("hy kid nos w cr kid i-iv", "hypertensive chronic kidney disease"),
}
PROCEDURES = {
    "3893": ("venous cath nec", "venous catheterization, not elsewhere classified"),
    "9604": ("insert endotracheal tube", "insertion of endotracheal tube"),
    "9671": ("cont inv mec ven 96 hrs", "continuous invasive mechanical ventilation for less than 96 hours"),
    "966": ("entral infus nutrit sub", "enteral infusion of nutritional substances"),
    "9904": ("packed cell transfusion", "transfusion of packed cells"),
    "3961": ("extracorporeal circulat", "extracorporeal circulation"),
    "8856": ("coronar arteriogr-2 cath", "coronary arteriography using two catheters"),
    "3995": ("hemodialysis", "hemodialysis"),
    "4513": ("sm bowel endoscopy nec", "other endoscopy of small intestine"),
    "3324": ("closed bronchial biopsy", "closed biopsy of bronchus"),
}
LABS = {  # label: middle, spread and unit
    "creatinine": (1.2, 0.6, "mg/dl"),
    "hemoglobin": (11.0, 1.8, "g/dl"),
    "potassium": (4.1, 0.5, "meq/l"),
    "sodium": (138.0, 4.0, "meq/l"),
    "glucose": (130.0, 40.0, "mg/dl"),
    "lactate": (2.0, 0.9, "mmol/l"),
    "white blood cells": (10.0, 4.0, "k/ul"),
    "platelet count": (220.0, 80.0, "k/ul"),
    "urea nitrogen": (24.0, 12.0, "mg/dl"),
    "bicarbonate": (25.0, 4.0, "meq/l"),
    "magnesium": (2.0, 0.3, "mg/dl"),
    "albumin": (3.4, 0.6, "g/dl"),
}
DRUGS = {  # drug: dose, unit and route
    "furosemide": (40, "mg", "iv"),
    "metoprolol": (25, "mg", "po"),
    "insulin": (10, "unit", "sc"),
    "heparin": (5000, "unit", "sc"),
    "vancomycin": (1000, "mg", "iv"),
    "pantoprazole": (40, "mg", "po"),
    "aspirin": (81, "mg", "po"),
    "acetaminophen": (650, "mg", "po"),
    "morphine sulfate": (2, "mg", "iv"),
    "lorazepam": (1, "mg", "iv"),
    "docusate sodium": (100, "mg", "po"),
    "potassium chloride": (20, "meq", "po"),
    "magnesium sulfate": (2, "gm", "iv"),
    "albuterol neb soln": (1, "neb", "ih"),
    "warfarin": (5, "mg", "po"),
    "atorvastatin": (80, "mg", "po"),
}
VITALS = {
    "heart rate": (85.0, 15.0, "bpm"),
    "respiratory rate": (18.0, 4.0, "insp/min"),
    "arterial bp mean": (78.0, 12.0, "mmhg"),
    "spo2": (97.0, 2.0, "%"),
    "temperature c": (37.0, 0.6, "deg. c"),
}
INPUTS = ("d5w", "normal saline", "packed rbc", "tpn w/lipids")
OUTPUTS = ("urine out foley", "chest tube", "gastric out", "stool out")
SPECIMENS = ("blood culture", "urine", "sputum", "swab")
ORGANISMS = ("escherichia coli", "staph aureus coag +", "klebsiella pneumoniae", "enterococcus sp.", "pseudomonas aeruginosa")
UNITS = ("micu", "sicu", "ccu", "csru", "tsicu")
KINDS = ("emergency", "urgent", "elective")
FROM = ("emergency room admit", "clinic referral/premature", "transfer from hosp/extram")
TO = ("home", "snf", "rehab/distinct part hosp", "home health care")
INSURANCES = ("medicare", "private", "medicaid", "government")
MARITAL = ("married", "single", "widowed", "divorced")
ETHNICITIES = ("white", "black/african american", "asian", "hispanic or latino", "unknown/not specified")
