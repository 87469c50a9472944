"""Which messages of a conversation are tasks, in several languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_memory.conversation import is_small_talk, kind_of, task_in
from cascade_memory.conversation.words import LANGUAGES

SMALL_TALK = """
thanks a lot! | ok great, thank you so much | hi | Hello there! | good morning | bye | perfect | that worked, thanks! | cool
great, it works now | ok | alright, thank you | no problem, bye | How are you? | Have a nice day! | hello, can you help me?
thank you for your quick help | Thx! | lol ok | Thanks, Anna! | Hi Support | ... | 👍 | 🙏🙏
Danke schön! | Vielen Dank für Ihre Hilfe! | super, hat geklappt, danke | Tschüss! | Perfekt, vielen Dank | alles klar
muchas gracias | Gracias por tu ayuda | ¡Perfecto, gracias! | merci beaucoup | Merci pour votre aide !
obrigado pela ajuda | grazie mille! | bedankt voor je hulp | tack så mycket för hjälpen | dzięki za pomoc | спасибо большое
çok teşekkürler | شكرا جزيلا | धन्यवाद | terima kasih banyak | cảm ơn bạn nhiều
ありがとうございます | お疲れ様でした | 谢谢你的帮助！ | 谢谢 | 你好 | 감사합니다 | 정말 감사합니다! | 안녕하세요
"""
FOLLOW_UPS = [
    ("and the stove?", "It arrives on Monday."),
    ("it still does not work", "Restart it."),
    ("yes please", "Shall I cancel it?"),
    ("Yes please, thank you!", "Would you like me to cancel it?"),
    ("no", "Does the lamp blink?"),
    ("order 12", "Which order number?"),
    ("4711", "What is the number?"),
    ("in red, please", "We have the tent."),
    ("why?", "No."),
    ("what about the other one?", "Done"),
    ("can you send it to Ann?", "Here is the receipt."),
    ("make it shorter", "Dear team, ..."),
    ("The blue one", "Which one do you want?"),
    ("How long will that take?", "I will repair it."),
    ("continue", "Part 1"),
    ("but now the lamp is red", "Press reset"),
    ("I bought it in Berlin", "Where did you buy it?"),
    ("und der Kocher?", "Er kommt am Montag."),
    ("es geht immer noch nicht", "Neu starten."),
    ("ja, bitte", "Soll ich die Bestellung 12 stornieren?"),
    ("Geht das auch in Rot?", "Das Zelt ist grün."),
    ("Ich habe die Nummer 12 vom März.", "Welche Nummer hat die Bestellung?"),
    ("y la cocina?", "Llega el lunes."),
    ("todavía no funciona", "Reinícielo."),
    ("et le réchaud ?", "Il arrive lundi."),
    ("ça ne marche toujours pas", "Redémarrez."),
    ("それでもつながりません", "再起動してください。"),
    ("还是不行", "请重启。"),
    ("а во вторник?", "В понедельник."),
    ("всё ещё не работает", "Перезагрузите."),
    ("또 안 돼요", "다시 시작하세요"),
]
TASKS = [
    ("Where is my stove?", "The tent arrives on Monday."),
    ("How do I return a pair of boots?", "It arrives on Monday."),
    ("cancel order 14", "It arrives on Monday."),
    ("Write a poem about autumn", "Would you like me to book a taxi?"),
    ("My card was declined in Lisbon", "Is there anything else I can do?"),
    ("Thanks! How do I change my address?", "It arrives on Monday."),
    ("Reset the password of Ms Miller", "Done."),
    ("turn off the kitchen lights", "Door locked."),
    ("What is 6 * 7?", "42"),
    ("what time is it?", "It arrives on Monday."),
    ("Wie kann ich mein Passwort zurücksetzen?", "Das Zelt kommt am Montag."),
    ("Wo ist meine Bestellung 17?", "Gern! Kann ich sonst noch etwas tun?"),
    ("Danke! Wie kündige ich mein Abo?", "Es kommt am Montag."),
    ("¿Cómo devuelvo las botas?", "Llega el lunes."),
    ("Comment changer mon adresse de livraison ?", "Il arrive lundi."),
    ("Как изменить адрес доставки?", "В понедельник."),
    ("書類の印刷方法を教えてください", "再起動してください。"),
    ("怎么修改我的收货地址？", "请重启。"),
    ("비밀번호를 어떻게 재설정하나요?", "다시 시작하세요"),
]


@pytest.mark.parametrize("text", [one.strip() for line in SMALL_TALK.strip().splitlines() for one in line.split("|")])
def test_small_talk_is_no_task_anywhere_in_a_conversation(text: str):
    assert kind_of(text) == "small talk"
    assert kind_of(text, answer="It arrives on Monday.") == "small talk"


@pytest.mark.parametrize(("text", "answer"), FOLLOW_UPS)
def test_what_cannot_be_understood_alone_goes_on_with_the_task(text: str, answer: str):
    assert kind_of(text, answer=answer) == "follow-up"


@pytest.mark.parametrize(("text", "answer"), TASKS)
def test_what_can_be_understood_alone_is_a_task_of_its_own(text: str, answer: str):
    assert kind_of(text) == "task"
    assert kind_of(text, answer=answer) == "task"


def test_thanks_for_an_offer_are_small_talk_and_a_yes_is_not():
    assert kind_of("no, thanks", answer="Would you like me to book a taxi?") == "small talk"
    assert kind_of("ok, thanks!", answer="It is done. Is there anything else I can do for you?") == "small talk"
    assert kind_of("yes, please", answer="It is cancelled. Shall I refund the money?") == "follow-up"


def test_the_first_message_that_says_something_is_the_task_whatever_it_sounds_like():
    assert kind_of("it does not work") == "task"
    assert task_in([(True, "hello"), (False, "Hi! How can I help?"), (True, "it does not work")]) == ("task", 2)
    assert task_in([(True, "hello"), (False, "Hi! Shall I help?"), (True, "yes")]) == ("small talk", None)
    assert task_in([]) == ("small talk", None)


def test_two_tasks_in_a_conversation():
    turns = [
        (True, "Where is my tent?"),
        (False, "It arrives on Monday."),
        (True, "thanks"),
        (False, "Anything else?"),
        (True, "How do I return boots?"),
        (False, "Which order number?"),
        (True, "number 12"),
    ]
    found = [task_in(turns[: length + 1]) for length in range(0, len(turns), 2)]
    assert found == [("task", 0), ("small talk", 0), ("task", 4), ("follow-up", 4)]


def test_a_message_that_is_skipped_is_no_task_and_none_goes_on_with_it():
    turns = [(True, "Where is my tent?"), (False, "On its way."), (True, "/help"), (False, "Ask me."), (True, "and the stove?")]
    seen: list[str] = []

    def command(text: str) -> bool:
        seen.append(text)
        return text.startswith("/")

    assert task_in(turns[:3], skip=command) == ("small talk", None)
    assert seen == ["/help"]
    assert task_in(turns, skip=command) == ("follow-up", 0)
    assert task_in(turns[2:], skip=command) == ("task", 2), "no task came before it"


def test_a_long_message_is_a_task():
    assert kind_of("and " * 100, answer="Yes.") == "task"


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_pleasantry_of_each_language_is_small_talk(language: str):
    phrases = [one.strip() for one in LANGUAGES[language].pleasant.split(",")]
    assert [one for one in phrases if not is_small_talk(one)] == []


@given(st.text(), st.text())
def test_any_text_is_of_some_kind(text: str, answer: str):
    assert kind_of(text, answer=answer) in ("task", "follow-up", "small talk")
    kind, place = task_in([(True, text), (False, answer), (True, text)])
    assert (place is None) == (kind == "small talk" and is_small_talk(text))


CLOSINGS = """Thanks, sorted it myself|ok cheers that did the trick|Brilliant, everything is back to normal
Great, order arrived today|Thank you for your patience
awesome, I'm all good now|Thanks again, have a nice weekend|no more questions, thanks
that's everything, thank you|Perfect, that answers my question|cool, got the refund|Thanks, I found it|thanks, will try that
ok I will try tomorrow, thanks|super helpful, thank you|You're the best|Alright, nothing else from me|Great, I'll do that
Thanks, this ticket can be closed|Danke, das hat mir sehr geholfen|Super, jetzt geht alles|Danke, ich probiere das aus
Perfekt, mehr brauche ich nicht|Vielen Dank, das war's"""


def test_closing_messages_are_no_tasks_but_for_two_of_twenty_four():
    messages = CLOSINGS.replace("\n", "|").split("|")
    assert len(messages) == 24
    tasks = [one for one in messages if kind_of(one, answer="Hold the button for ten seconds.") == "task"]
    assert tasks == ["super helpful, thank you", "You're the best"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Thank you, that was helpful, the kettle works now", "small talk"),
        ("Great, problem solved.", "small talk"),
        ("Perfect, you can close the ticket", "small talk"),
        ("Danke, der Kocher läuft wieder", "small talk"),
        ("ありがとうございます、ランプが動きました", "small talk"),
        ("Thanks, it works! Cancel it", "follow-up"),
        ("Thanks that works, but the stove?", "follow-up"),
        ("Thanks, the first fix worked but the screen is still black", "task"),
        ("Perfect, thank you, that helped. My lamp is broken too.", "task"),
        ("Perfect, please close the account of Ms Miller", "task"),
    ],
)
def test_who_says_after_thanks_that_it_has_helped_has_no_task(text: str, kind: str):
    assert kind_of(text, answer="Hold the button for ten seconds.") == kind
