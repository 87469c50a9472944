"""The wording of the tasks about the operation of networks and machines."""

from __future__ import annotations

from cascade_memory.evaluation.tasks.template import Template

_FORM = r"Answer with one entry of the list, spelled as it is there, and with nothing else, in this form: \boxed{...}"

ALERT = Template(
    about="You see a log message of a network device. Say which type of alert it is.",
    options="The possible types:",
    task="Log",
    form=_FORM,
)

MODULE = Template(
    about="You see a log message of a network device, without the name of its module. Say which module has sent it.",
    options="The possible modules:",
    task="Log",
    form=_FORM,
)

FAULT = Template(
    about="You see log messages of a server. Say which type of fault they tell of.",
    options="The possible types of fault:",
    task="Log",
    form=_FORM,
)

CATEGORY = Template(
    about="You see a log message of a supercomputer. Say which category of alert it is, or that it is normal.",
    options="The possible categories:",
    task="Log",
    form=_FORM,
)
