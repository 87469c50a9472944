"""What a model is told about each of the paper's tasks without an environment: in our words, with the paper's content."""

from __future__ import annotations

from cascade_memory.evaluation.tasks.medications import MEDICATIONS
from cascade_memory.evaluation.tasks.template import Template

# Tasks that ask for a query.
QUERY = Template(
    about=(
        "You see the schema of an SQLite database and a question about its data. Write the query that answers the question. "
        "A case from memory may be about this database or about another one."
    ),
    task="Question",
    form="Answer with one SQLite query and with nothing else, in this form:\n```sql\nSELECT ...\n```",
    around=("```sql\n", "\n```"),
)

# Financial tasks.
INTENT = Template(
    about="You see a message from a customer of a bank. Route it: say which one intent it has.",
    options="The possible intents:",
    task="Message",
    form=r"Answer with one intent, spelled as in the list, and with nothing else, in this form: \boxed{...}",
)
SENTIMENT = Template(
    about=(
        "You see a headline of financial news. Find the entities (companies and organisations) that it names, and say for each "
        "whether what the headline says of it is positive, negative or neutral."
    ),
    options="The sentiments:",
    listed=("positive", "negative", "neutral"),
    derived=False,
    task="Headline",
    form=(
        "Answer with one line for each entity, in the order of the headline, and with nothing else. An entity that the "
        "headline names several times gets a line each time. The form of a line:\n"
        '{"entity": "as in the headline", "label": "positive, negative or neutral"}'
    ),
    around=("", ""),
)

# Legal tasks.
CHARGES = Template(
    about="You see the facts that a court has found in a case. Decide for every defendant which crime they have committed.",
    options="The possible crimes, and what each means:",
    listed=(
        (
            "Offences of Illegal Manufacture of Firearms",
            "making firearms against the rules of the state, a danger to the public",
        ),
        ("Offences of Illegal Trade in Firearms", "buying or selling firearms against the rules of the state"),
        ("Offences of Illegal Possession of Firearms", "having firearms without a permit"),
        ("Offence of Selling Counterfeit Registered Goods", "selling many goods known to bear a counterfeit trademark"),
        ("Contract Fraud", "cheating the other side of a contract out of much property, with invented or hidden facts"),
        ("Offence of Illegal Business Operation", "doing business against the rules of the state in a serious way"),
        (
            "Offence of Counterfeiting a Registered Trademark",
            "using somebody's trademark for the same goods without permission",
        ),
        ("Intentional Homicide", "killing a person on purpose and unlawfully"),
        ("Intentional Injury", "injuring a person's body on purpose and unlawfully"),
        ("Crime of Illegal Detention", "unlawfully locking a person up, or taking their freedom in another way"),
        ("Robbery", "taking property on the spot by violence, by threats or by force"),
        ("Fraud", "getting much property from others with invented or hidden facts"),
        ("Extortion and Blackmail", "demanding much property from its owner or keeper with threats"),
        ("Crime of Cheating and Bluffing", "pretending to be an official of the state to gain from it"),
        ("Crime of Affray", "bringing people together for a fight that disturbs public order"),
        (
            "Crime of Picking Quarrels and Provoking Troubles",
            "beating or harassing people at will, taking or breaking property at will, or causing an uproar in a public place",
        ),
        ("Concealment of Proceeds of Crime", "hiding, moving, buying or selling what is known to come from a crime"),
        ("Harboring and Covering", "giving a known offender a hiding place, money or a false testimony"),
        ("Crime of Organisation of Prostitution", "managing several people who work as prostitutes"),
        ("Crime of Facilitating the Organisation of Prostitution", "helping others to manage people who work as prostitutes"),
        ("Crime of Harboring Prostitution", "giving others a place for prostitution"),
        ("Crime of Procuring prostitution", "bringing prostitutes and their clients together"),
    ),
    task="Facts",
    form=(
        "Answer with the crime of every defendant, named as in the list, and with nothing else, in this form:\n"
        '```json\n{"first defendant": "crime", "second defendant": "crime", ...}\n```'
    ),
    around=("```json\n", "\n```"),
)
PENALTIES = Template(
    about="You see the facts that a court has found in a case. Predict for every defendant the kinds of penalty.",
    options="A defendant may get one or several of these kinds of penalty:",
    listed=("Surveillance", "Detention", "Imprisonment", "Life Imprisonment", "Death Penalty", "Fine"),
    task="Facts",
    form=(
        "The defendants are: {names}. Answer with the list of penalties of each and with nothing else, as JSON: "
        '{"first defendant": ["penalty", ...], "second defendant": ["penalty", ...], ...}'
    ),
    around=("", ""),
)

# Medical tasks.
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

# Tasks about the operation of networks and machines.
ALERT = Template(
    about="You see a log message of a network device. Say which type of alert it is.",
    options="The possible types:",
    task="Log",
    form=_PICKED,
)
MODULE = Template(
    about="You see a log message of a network device, without the name of its module. Say which module has sent it.",
    options="The possible modules:",
    task="Log",
    form=_PICKED,
)
FAULT = Template(
    about="You see log messages of a server. Say which type of fault they tell of.",
    options="The possible types of fault:",
    task="Log",
    form=_PICKED,
)
CATEGORY = Template(
    about="You see a log message of a supercomputer. Say which category of alert it is, or that it is normal.",
    options="The possible categories:",
    task="Log",
    form=_PICKED,
)
