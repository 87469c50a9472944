"""The wording of the medical tasks."""

from __future__ import annotations

from cascade_memory.evaluation.tasks.template import Template
from cascade_memory.evaluation.tasks.wordings.medications import MEDICATIONS

_PICKED = r"Answer with one entry of the list, spelled as it is there, and with nothing else, in this form: \boxed{...}"

DIAGNOSIS = Template(
    about="You see the profile of a patient. Decide which one diagnosis fits it.",
    options="The diagnosis is one of these:",
    task="Patient",
    form=_PICKED,
)

MEDICATION = Template(
    about="You see the profile of a patient in a hospital. Prescribe the set of medications that the patient needs.",
    options="The hospital has these medications, one per line:",
    listed=MEDICATIONS,
    task="Patient",
    form=(
        "Answer with the medications that you prescribe, spelled as in the list, and with nothing else, as a JSON list: "
        '["first medication", "second medication", ...]'
    ),
    around=("", ""),
)

SPECIALTY = Template(
    about="You see the profile of a patient. Refer the patient to the medical specialty that should see them.",
    options="The hospital has these specialties:",
    listed=(
        "Cardiology",
        "Dermatology",
        "Emergency Medicine",
        "Endocrinology",
        "ENT (Ear, Nose, Throat)",
        "General Surgery",
        "Hematology",
        "Infectious Disease",
        "Internal Medicine",
        "Nephrology",
        "Neurology",
        "Neurosurgery",
        "Obstetrics & Gynecology (OB/GYN)",
        "Oncology",
        "Ophthalmology",
        "Orthopedics",
        "Psychiatry & Mental Health",
        "Rheumatology",
        "Urology",
    ),
    task="Patient",
    form=_PICKED,
)

TRIAGE = Template(
    about="You see the profile of a patient in an emergency department. Give the level of the Emergency Severity Index (ESI).",
    options="The levels, from the most to the least urgent:",
    listed=(
        ("1", "the patient needs treatment that saves their life, at once"),
        ("2", "the risk is high: for example, the patient is confused or hard to wake, or in severe pain or distress"),
        ("3", "two or more tests or treatments will be needed, and the vital signs are not alarming"),
        ("4", "one test or treatment will be needed, such as a blood test, an image or an ECG"),
        ("5", "nothing will be needed beyond an examination: no blood test, no image, no care of a wound"),
    ),
    derived=False,
    task="Patient",
    form=r"Answer with the number of the level and with nothing else, in this form: \boxed{...}",
)
