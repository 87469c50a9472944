"""The wording of the legal tasks."""

from __future__ import annotations

from cascade_memory.evaluation.tasks.template import Template

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
