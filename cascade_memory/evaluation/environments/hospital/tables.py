"""The tables of the records, named as in the MIMIC-III part of EHRSQL, which EHRAgent and the paper use."""

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
