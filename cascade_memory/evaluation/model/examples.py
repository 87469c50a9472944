"""Examples of solved tasks with thoughts, one for each world, for a model that thinks but has no case, as in the paper."""

from __future__ import annotations

HOUSEHOLD_EXAMPLE = """\
Task: You are in the middle of a room. Looking quickly around you, you see a armchair 1, a drawer 2, a drawer 1, a shelf 1, \
and a sofa 1.

Your task is to: put some watch on sofa.
Solution:
Action: think: First I have to find a watch. It may be on the shelf, in a drawer or on the armchair.
OK.
Action: go to shelf 1
On the shelf 1, you see a book 1, and a vase 2.
Action: go to drawer 1
The drawer 1 is closed.
Action: open drawer 1
You open the drawer 1. The drawer 1 is open. In it, you see a keychain 1, and a watch 1.
Action: think: There is the watch. I take it, and then I bring it to the sofa.
OK.
Action: take watch 1 from drawer 1
You pick up the watch 1 from the drawer 1.
Action: go to sofa 1
On the sofa 1, you see a pillow 1.
Action: move watch 1 to sofa 1
You move the watch 1 to the sofa 1.
"""

SCIENCE_EXAMPLE = """\
Task: Your task is to find a(n) animal. First, focus on the thing. Then, move it to the green box in the workshop.
This room is called the hallway. In it, you see:
\tthe agent
\ta substance called air
\ta picture
You also see:
\tA door to the greenhouse (that is open)
\tA door to the workshop (that is open)
In your inventory, you see:
\tan orange
Solution:
Action: think: Animals live outside. I look there first.
OK.
Action: teleport to outside
You teleport to the outside.
Action: look around
This outside location is called the outside. Here you see:
\tthe agent
\ta substance called air
\tan axe
\ta turtle egg
\ta dove
Action: think: The dove is an animal. I focus on it, and then I bring it to the green box.
OK.
Action: focus on dove
You focus on the dove.
Action: pick up dove
You move the dove to the inventory.
Action: teleport to workshop
You teleport to the workshop.
Action: move dove to green box
You move the dove to the green box.
"""
