"""The words by which a message is recognised as small talk, or as one that goes on with what was said before.

For each language:

- ``pleasant``: a message of small talk has one of these words or phrases, and otherwise only words of the next two kinds
- ``fillers``: words that such a message may have as well
- ``answers``: yes, no, and what else answers a question
- ``openers``: words with which nobody begins a conversation
- ``back``: words that stand for something that was named before
- ``bare``: other words without a topic of their own
- ``refusals``: the ``answers`` that say no
- ``proposals``: how an assistant asks whether it should do something; the user answers with yes or no
- ``closing``: how an assistant asks for the next task, which is not a question about this task
- ``done``: how a user says, after thanks, that something has helped, or that the matter is closed: "Great, the lamp works now"
- ``whole``: phrases in which a word of ``back`` does not stand for anything that was named before

In a language that is missing here, no words are small talk. Its messages are tasks, except after a task: there, a single word,
or a short answer to a question, goes on with that task.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of one language. Phrases are separated by commas, single words by spaces."""

    pleasant: str
    fillers: str
    answers: str
    openers: str
    back: str
    bare: str
    refusals: str
    proposals: str
    closing: str
    done: str
    whole: str = ""
    spaced: bool = True  # whether words are separated by spaces


LANGUAGES = {
    "en": Words(
        pleasant="thanks, thank you, thank, thx, ty, cheers, hi, hello, hey, hiya, good morning, good afternoon, good evening, "
        "good night, bye, goodbye, good bye, see you, great, perfect, awesome, cool, nice, excellent, wonderful, amazing, brilliant, "
        "good job, well done, got it, i see, understood, never mind, no worries, no problem, sorry, appreciate it, appreciated, "
        "have a nice day, have a good day, how are you, that is all, that s all, that worked, it worked, it works, that helped, "
        "that helps, lol, haha, welcome",
        fillers="quick fast prompt a lot so much very many really for your the all help you that this it was is s are helpful kind there everyone "
        "and again then now later soon today tomorrow day team i m am we me my just again in advance anyway oh wow well just "
        "can could would please ok okay day one too back works worked fine good again support bot assistant",
        answers="yes, yeah, yep, yup, no, nope, nah, ok, okay, k, sure, right, correct, exactly, please, fine, alright, all right, "
        "of course, go ahead, do it, please do, not yet, good",
        openers="and, but, also, or, so, then, what about, how about, what if, because, instead, otherwise, ok but, yes but, no but, "
        "yes, no, ok, okay, still, again, same, neither, nor, besides, actually, wait, sorry i meant, i meant, i mean",
        back="it that this them they those these one ones same again still instead too also else he him his she her another other "
        "more both either above previous last former latter former shorter longer",
        bare="a an the is are was were be been am do does did don doesn didn t s ll re ve m d i you we my your our me us to of in "
        "on at for from with by as about into than then now not no if can could will would should may might must has have had "
        "what which who whom whose when where why how so very please just and or but there here any some all only up out off",
        refusals="no, nope, nah, not yet",
        proposals="would you like, do you want, shall i, should i, want me to, can i, may i, do you need me to",
        closing="anything else, something else, how can i help, how may i help, can i help, may i help, help you with, was "
        "that helpful, did that help, what else",
        done="works, working, worked, solved, fixed, resolved, helped, helpful, sorted, all set, all good, close the "
        "ticket, close this ticket, close the case, close this, problem solved, issue solved, problem fixed, issue "
        "fixed, problem resolved, issue resolved, that s it, that is it",
        whole="what time is it, what day is it, what date is it, is it possible, it is possible, is it raining, is it true, "
        "how far is it, that is, this week, this month, this year, this morning, this evening, more than, either way",
    ),
    "de": Words(
        pleasant="danke, dankeschön, danke schön, danke sehr, vielen dank, besten dank, herzlichen dank, merci, hallo, hi, hey, "
        "servus, moin, grüß gott, grüezi, guten morgen, guten tag, guten abend, gute nacht, tschüss, tschüs, auf wiedersehen, "
        "bis bald, bis dann, super, prima, klasse, perfekt, toll, großartig, alles klar, verstanden, schönen tag, "
        "schönen abend, schönes wochenende, hat geklappt, hat funktioniert, hat geholfen, kein problem, entschuldigung, wunderbar",
        fillers="dir ihnen euch für die das deine ihre eure schnelle gute hilfe sehr ganz so vielmals nochmal ok okay gut es hat mir "
        "ist war ja jetzt noch einen ein ich und dann wirklich lieb nett zusammen team bitte wünsche tag",
        answers="ja, jo, nein, nö, ok, okay, gut, genau, richtig, gerne, gern, bitte, klar, stimmt, mach das, natürlich, noch nicht",
        openers="und, aber, auch, oder, also, dann, sondern, außerdem, was ist mit, wie ist es mit, wie wäre es mit, doch, "
        "trotzdem, ja, nein, ok, noch, wieder, ich meinte, ich meine, moment, eigentlich",
        back="es das dies diese dieser dieses diesen dem den ihn ihm sie ihr ihnen er davon damit darin dafür dazu darauf jene selbe "
        "gleiche gleichen wieder noch immer stattdessen anderen andere anderes anders auch letzte letzten beide beiden mehr "
        "kürzer länger",
        bare="der die das den dem des ein eine einen einem einer eines ist sind war waren sein bin bist hat habe haben hatte wird "
        "werden wurde kann können könnte soll sollte will möchte muss darf ich du wir mein meine meinen meiner dein deine unser "
        "mir mich dir dich uns zu zum zur von vom in im an am auf aus bei beim mit nach für über um als wie was wer wo wann "
        "warum wieso welche welcher welches nicht kein keine nur schon doch mal so sehr bitte und oder aber wenn dass ob es "
        "geht gibt man hier da jetzt denn",
        refusals="nein, nö, noch nicht",
        proposals="möchten sie, möchtest du, soll ich, wollen sie, willst du, darf ich",
        closing="noch etwas, sonst noch, kann ich ihnen, kann ich dir, weiterhelfen, wie kann ich, war das hilfreich",
        done="funktioniert, klappt, geklappt, läuft, gelöst, behoben, erledigt, repariert, geholfen, hilfreich, problem "
        "gelöst, problem behoben, problem ist gelöst, ticket schließen, das war alles, das ist alles",
        whole="wie spät ist es, gibt es, es gibt, ist es möglich, ist es wahr, wie geht es, regnet es, nach dem, vor dem, "
        "auf dem, in dem, mit dem, aus dem, bei dem, von dem, zu dem, mehr als",
    ),
    "fr": Words(
        pleasant="merci, merci beaucoup, mille mercis, bonjour, salut, coucou, bonsoir, bonne nuit, bonne journée, bonne soirée, "
        "au revoir, à bientôt, à plus, super, parfait, génial, excellent, formidable, d accord merci, ça marche, c est bon, "
        "compris, très bien, pas de problème, de rien, désolé, désolée, bravo",
        fillers="beaucoup bien infiniment pour votre ton ta aide tout c est était très vous toi à de la le et encore ok oui bonne "
        "journée rapide réponse ça ce cela a marché maintenant je",
        answers="oui, ouais, non, ok, d accord, exactement, s il vous plaît, s il te plaît, svp, stp, bien sûr, voilà, vas y, "
        "allez y, pas encore",
        openers="et, mais, aussi, ou, alors, puis, sinon, donc, et pour, qu en est il, oui, non, ok, en fait, je voulais dire, "
        "toujours, encore",
        back="ça cela ce ceci celui celle ceux celles il elle ils elles le lui leur y en même encore toujours autre autres aussi "
        "plutôt dernier dernière deux plus court long",
        bare="le la les l un une des de du d c j m t s n qu est sont était être ai as a avez avons ont je tu vous nous on mon ma mes "
        "votre vos notre nos ton ta tes me te se à au aux en dans sur pour par avec sans et ou mais que qui quoi quel quelle "
        "quels quelles où quand comment pourquoi combien ne pas plus très si peut peux pouvez faut fait faire dois veux voudrais "
        "cette cet ces il y",
        refusals="non, pas encore",
        proposals="souhaitez vous, voulez vous, veux tu, puis je, dois je, aimeriez vous",
        closing="autre chose, je peux vous aider, vous aider, comment puis je",
        done="marche, fonctionne, résolu, réglé, réparé, aidé, utile, problème résolu, problème réglé, fermer le "
        "ticket, fermer ce ticket, clôturer le ticket, c est tout",
        whole="quelle heure est il, il y a, y a t il, est ce que, qu est ce que, qu est ce qui, il pleut, il faut, s il "
        "vous plaît, s il te plaît, plus de, ce que, ce qui",
    ),
    "es": Words(
        pleasant="gracias, muchas gracias, mil gracias, muchísimas gracias, hola, buenos días, buenas tardes, buenas noches, buenas, "
        "adiós, adios, hasta luego, hasta pronto, chao, perfecto, genial, excelente, estupendo, fantástico, entendido, "
        "de acuerdo gracias, muy bien, muy amable, de nada, lo siento, perdón, ha funcionado, funcionó, qué tal, saludos",
        fillers="por tu su la ayuda todo muy mucho de verdad es ha sido que tenga tengas un buen día vale ok sí y otra vez me rápida "
        "respuesta te lo agradezco ahora ya a usted ti",
        answers="sí, si, no, vale, ok, claro, exacto, correcto, por favor, de acuerdo, bueno, todavía no, aún no, adelante, hazlo",
        openers="y, e, pero, también, o, entonces, además, luego, qué tal si, y si, y qué, sí, si, no, vale, ok, todavía, sigue, "
        "quise decir, quiero decir, en realidad",
        back="eso esto esta este ese esa ello lo ellos ellas él ella mismo misma otra otro otros otras todavía aún sigue también "
        "último última dos más corto largo anterior",
        bare="el la los las un una unos unas de del al a en con por para sin sobre es son está están era fue ser estar hay ha he has "
        "han mi mis tu tus su sus me te se nos yo usted que qué quién cuál cuáles cómo cuándo dónde cuánto cuánta no ni y o pero "
        "si muy ya puedo puede puedes quiero necesito hacer le les",
        refusals="no, todavía no, aún no",
        proposals="quiere que, quieres que, le gustaría, te gustaría, desea que",
        closing="algo más, alguna otra cosa, puedo ayudar, ayudarle, ayudarte, desea algo",
        done="funciona, funcionó, resuelto, solucionado, arreglado, ayudó, ayudado, útil, problema resuelto, problema "
        "solucionado, cerrar el ticket, cerrar el caso, eso es todo",
        whole="qué hora es, esta semana, este mes, este año, más de, lo que",
    ),
    "pt": Words(
        pleasant="obrigado, obrigada, muito obrigado, muito obrigada, valeu, olá, oi, bom dia, boa tarde, boa noite, tchau, adeus, "
        "até logo, até mais, perfeito, ótimo, excelente, maravilha, legal, entendi, de nada, desculpe, funcionou, tudo bem",
        fillers="pela pelo por sua ajuda tudo muito mesmo foi é e que tenha um bom dia ok sim agora já a você rápida resposta",
        answers="sim, não, ok, claro, isso, exato, certo, por favor, ainda não, pode ser, está bem",
        openers="e, mas, também, ou, então, além disso, e se, e quanto, sim, não, ok, ainda, na verdade, quis dizer",
        back="isso isto esse essa este esta ele ela eles elas o mesmo mesma outro outra ainda também último última dois mais anterior "
        "curto longo",
        bare="o a os as um uma de do da dos das no na nos nas em com por para sem sobre é são está estão era foi ser tem meu minha "
        "meus minhas seu sua me te se eu você que quem qual quais como quando onde quanto não e ou mas se muito já posso pode "
        "quero preciso fazer lhe ao",
        refusals="não, ainda não",
        proposals="gostaria de, quer que, deseja que, posso",
        closing="algo mais, mais alguma coisa, posso ajudar",
        done="funciona, funcionou, resolvido, solucionado, consertado, ajudou, útil, problema resolvido, fechar o "
        "chamado, fechar o ticket, isso é tudo",
        whole="que horas são, esta semana, este mês, este ano, mais de, o que",
    ),
    "it": Words(
        pleasant="grazie, grazie mille, molte grazie, tante grazie, ciao, salve, buongiorno, buon giorno, buonasera, buona sera, "
        "buonanotte, buona giornata, arrivederci, a presto, perfetto, ottimo, fantastico, eccellente, capito, prego, scusa, "
        "scusi, ha funzionato, funziona, va bene grazie, benissimo",
        fillers="per il tuo suo aiuto tutto molto davvero è stato di cuore e buona giornata ok sì ora la risposta lei te",
        answers="sì, si, no, ok, va bene, certo, esatto, giusto, per favore, non ancora, d accordo, fallo",
        openers="e, ma, anche, o, allora, poi, inoltre, e se, che ne dici, sì, no, ok, ancora, volevo dire, in realtà",
        back="questo questa questi quello quella quelli ciò lo lui lei loro esso stesso stessa altro altra ancora anche ultimo ultima "
        "due più corto lungo",
        bare="il lo la i gli le un uno una di del della dei delle a al alla da dal in nel nella con su per tra è sono era essere ho "
        "hai ha mio mia miei tuo suo mi ti si ci io tu che chi cosa quale quali come quando dove quanto perché non e o ma se "
        "molto già posso può vorrei voglio fare c l",
        refusals="no, non ancora",
        proposals="vuole che, vuoi che, desidera che, le piacerebbe, devo",
        closing="qualcos altro, qualcosa d altro, posso aiutar, altro",
        done="funziona, risolto, sistemato, riparato, aiutato, utile, problema risolto, chiudere il ticket, è tutto",
        whole="che ore sono, questa settimana, questo mese, quest anno, più di, lo stesso",
    ),
    "nl": Words(
        pleasant="dank je, dank u, dankjewel, dankuwel, bedankt, hartelijk dank, hallo, hoi, hey, goedemorgen, goedemiddag, "
        "goedenavond, doei, dag, tot ziens, super, perfect, top, prima, geweldig, fijn, begrepen, het werkt, graag gedaan, sorry",
        fillers="voor je uw de hulp heel erg veel alles wel zeer het was en fijne dag ok oké ja goed nu jullie zo snelle",
        answers="ja, nee, ok, oké, goed, precies, juist, graag, alsjeblieft, alstublieft, zeker, nog niet",
        openers="en, maar, ook, of, dan, dus, hoe zit het met, ja, nee, ok, nog, eigenlijk, ik bedoelde",
        back="het dat dit deze die hem haar hen ze hij zelfde dezelfde hetzelfde nog weer ander andere ook laatste beide meer korter",
        bare="de het een is zijn was waren ben heb hebt heeft had wordt kan kunnen kun zou wil moet mag ik je u jij we wij mijn jouw uw "
        "ons onze mij me te van in op aan uit bij met naar voor over om als hoe wat wie waar wanneer waarom welke niet geen "
        "alleen er hier nu en of maar",
        refusals="nee, nog niet",
        proposals="wilt u, wil je, zal ik, moet ik",
        closing="nog iets, iets anders, kan ik u, kan ik je, verder helpen",
        done="werkt, opgelost, gerepareerd, geholpen, nuttig, behulpzaam, probleem opgelost, ticket sluiten, dat was "
        "alles, dat is alles",
        whole="hoe laat is het, is het mogelijk, het is, deze week, meer dan",
    ),
    "sv": Words(  # and Danish and Norwegian
        pleasant="tack, tack så mycket, tusen tack, hej, hejsan, god morgon, god kväll, hej då, hejdå, tak, mange tak, takk, "
        "tusen takk, mange takk, hei, god morgen, godmorgen, god dag, ha det, farvel, perfekt, toppen, jättebra, supert, bra jobbat, "
        "flott, fint, förstått, ingen orsak, varsågod, det fungerar, det virker",
        fillers="för din all hjälp hjälpen så mycket det är var och ok ja bra nu for hjælpen hjelpen så meget er veldig kjempe ha en "
        "fin dag dig deg",
        answers="ja, jo, nej, nei, ok, okej, bra, precis, gärna, gerne, gjerne, javisst, inte än",
        openers="och, og, men, också, også, eller, så, då, vad händer om, hur är det med, hvad med, hva med, ja, nej, nei, "
        "fortfarande, egentligen, jag menade",
        back="det den de dem denna detta dessa denne dette disse han hon hun samma samme fortfarande stadig fortsatt annan andra anden "
        "annen också også mer båda",
        bare="en ett et den det de är er var vara har hade kan kunde ska skal skulle vill vil måste må jag jeg du vi min mitt mina mit "
        "din ditt mig meg dig deg att at å av i på om till til från fra för for med hur hvordan vad hvad hva vem hvem var hvor "
        "när når varför hvorfor vilken hvilken inte ikke ingen här her nu och og eller men som",
        refusals="nej, nei, inte än",
        proposals="vill du, vil du, ska jag, skal jeg",
        closing="något mer, något annat, noget andet, noe annet, kan jag hjälpa, kan jeg hjelpe, kan jeg hjælpe",
        done="fungerar, löst, fixat, hjälpte, problemet löst, problemet är löst, stänga ärendet, det var allt, virker, "
        "fungerer, løst, hjalp, problemet er løst, lukke sagen, lukke saken, det var alt",
        whole="vad är klockan, det finns, finns det, er det mulig, är det möjligt",
    ),
    "pl": Words(
        pleasant="dzięki, dziękuję, dziękuje, dziękuję bardzo, bardzo dziękuję, wielkie dzięki, cześć, hej, witam, dzień dobry, "
        "dobry wieczór, dobranoc, do widzenia, na razie, pa, świetnie, super, doskonale, idealnie, rozumiem, działa, przepraszam",
        fillers="za pomoc bardzo wszystko to było i ok tak dobrze teraz panu pani ci szybką odpowiedź miłego dnia",
        answers="tak, nie, ok, dobrze, jasne, dokładnie, proszę, oczywiście, jeszcze nie",
        openers="i, a, ale, też, także, lub, albo, więc, potem, a co z, a jeśli, tak, nie, ok, nadal, wciąż, właściwie, miałem na myśli",
        back="to ten ta te tego tej tym tych go ją ich jego jej on ona ono nadal wciąż znowu inny inna inne drugi druga też ostatni "
        "więcej oba",
        bare="jest są był była było być mam masz ma mamy mogę może można chcę chciałbym muszę ja ty my mój moja moje moją mojego "
        "twój mi mnie się do z ze w we na o od po przy dla bez za jak co kto gdzie kiedy dlaczego ile który która które nie "
        "tylko już czy i a lub",
        refusals="nie, jeszcze nie",
        proposals="czy chcesz, czy chciałbyś, czy mam",
        closing="coś jeszcze, w czym mogę, czy mogę pomóc",
        done="działa, rozwiązane, rozwiązany, naprawione, pomogło, pomocne, problem rozwiązany, zamknąć zgłoszenie, to "
        "wszystko",
        whole="która jest godzina, w tym tygodniu, w tym roku",
    ),
    "ru": Words(
        pleasant="спасибо, большое спасибо, спасибо большое, благодарю, привет, здравствуйте, здравствуй, добрый день, доброе утро, "
        "добрый вечер, спокойной ночи, до свидания, пока, отлично, супер, прекрасно, идеально, замечательно, класс, понятно, "
        "понял, поняла, работает, заработало, извините, всё получилось, хорошего дня",
        fillers="за помощь вам тебе всё все очень огромное это было и ок да хорошо теперь вашу быструю большое так",
        answers="да, нет, ок, хорошо, конечно, точно, верно, пожалуйста, давай, давайте, ещё нет",
        openers="и, а, но, также, тоже, или, тогда, потом, а если, а что, как насчёт, да, нет, ок, всё ещё, всё равно, точнее",
        back="это этот эта эти того этого этой этом тот та те его её ее их он она оно они тоже снова опять другой другая другое "
        "другие второй вторая ещё последний оба",
        bare="есть был была было были быть я ты вы мы мой моя моё мои моего моей мне меня мной вам вас тебя наш ваш в во на с со "
        "к ко о об от до по за из у для без как что кто где куда когда почему зачем сколько какой какая какие который не ни "
        "ли бы же можно могу может надо нужно хочу только уже и или но там здесь",
        refusals="нет, ещё нет",
        proposals="хотите, хочешь, мне сделать, могу ли я",
        closing="что нибудь ещё, что то ещё, чем могу помочь",
        done="работает, заработало, решено, решена, исправлено, помогло, помогли, проблема решена, закрыть заявку, это "
        "всё, это все",
        whole="это значит, на этой неделе, в этом году",
    ),
    "tr": Words(
        pleasant="teşekkürler, teşekkür ederim, çok teşekkürler, çok teşekkür ederim, sağ ol, sağol, sağ olun, sağolun, eyvallah, "
        "merhaba, selam, günaydın, iyi günler, iyi akşamlar, iyi geceler, hoşça kal, görüşürüz, harika, süper, mükemmel, anladım, "
        "tamamdır, çalıştı, oldu, kolay gelsin",
        fillers="çok yardım yardımın yardımınız için her şey bu ve tamam evet iyi şimdi size sana",
        answers="evet, hayır, tamam, olur, tabii, tabi, doğru, lütfen, henüz değil, yok",
        openers="ve, ama, fakat, ayrıca, veya, ya da, peki, peki ya, o zaman, evet, hayır, tamam, hala, hâlâ, yine, aslında, yani",
        back="bu şu o bunu şunu onu bunun onun bunlar onlar aynı hala hâlâ yine başka diğer de da son ikisi daha",
        bare="bir mi mı mu mü ne kim nerede nereye ne zaman neden niye nasıl kaç hangi ben sen siz biz benim senin sizin bana beni "
        "sana size için ile gibi kadar var yok değil ve veya ama çok sadece artık",
        refusals="hayır, yok, henüz değil",
        proposals="ister misiniz, ister misin, edeyim mi",
        closing="başka bir şey, nasıl yardımcı, yardımcı olabilir",
        done="çalışıyor, çalıştı, çözüldü, düzeldi, yardımcı oldu, sorun çözüldü, kapatabilirsiniz, hepsi bu",
        whole="bu hafta, bu ay, bu yıl, daha fazla",
    ),
    "ar": Words(
        pleasant="شكرا, شكراً, شكرا جزيلا, شكرا لك, شكرا لكم, مشكور, جزاك الله خيرا, مرحبا, أهلا, اهلا, السلام عليكم, صباح الخير, "
        "مساء الخير, مع السلامة, وداعا, إلى اللقاء, ممتاز, رائع, عظيم, جميل, فهمت, تمام, عفوا, آسف",
        fillers="جزيلا كثيرا جدا لك لكم على المساعدة مساعدتك كل شيء هذا كان و نعم حسنا الآن يا",
        answers="نعم, لا, أجل, حسنا, حسناً, طبعا, بالتأكيد, صحيح, من فضلك, ليس بعد",
        openers="و, لكن, ولكن, أيضا, أو, إذن, ثم, وماذا عن, ماذا عن, نعم, لا, مازال, ما زال, لا يزال, وماذا",
        back="هذا هذه ذلك تلك هو هي هم نفس نفسه أيضا آخر أخرى مازال يزال الأخير كلاهما أكثر",
        bare="في من إلى على عن مع هل ما ماذا من أين متى لماذا كيف كم أي أنا أنت نحن لي لك لا لم لن ليس كان يكون أن إن التي الذي قد يمكن "
        "يمكنني أريد فقط",
        refusals="لا, ليس بعد",
        proposals="هل تريد, هل ترغب",
        closing="شيء آخر, كيف يمكنني, مساعدتك",
        done="يعمل, تعمل, اشتغل, تم الحل, حلت المشكلة, تم حل المشكلة, ساعدني, إغلاق التذكرة, هذا كل شيء",
        whole="هذا الأسبوع, هذا العام",
    ),
    "hi": Words(
        pleasant="धन्यवाद, बहुत धन्यवाद, शुक्रिया, बहुत शुक्रिया, नमस्ते, नमस्कार, हैलो, हेलो, सुप्रभात, शुभ रात्रि, अलविदा, बढ़िया, बहुत बढ़िया, "
        "शानदार, समझ गया, समझ गई, dhanyavaad, shukriya, namaste",
        fillers="बहुत आपका आपकी मदद के लिए की यह था है और हाँ ठीक अब जी सब",
        answers="हाँ, हां, नहीं, ठीक है, ठीक, जी, जी हाँ, सही, कृपया, अभी नहीं",
        openers="और, लेकिन, पर, भी, या, तो, फिर, और क्या, हाँ, नहीं, अभी भी",
        back="यह वह ये वे इस उस इसे उसे इसका उसका इसकी उसकी वही अभी भी दूसरा दूसरी और अंतिम दोनों",
        bare="है हैं था थी थे हूँ का की के को से में पर ने मैं मेरा मेरी मेरे मुझे आप हम क्या कौन कहाँ कब क्यों कैसे कितना कितने नहीं न "
        "और या लिए सकता सकते कर करें करना हो",
        refusals="नहीं, अभी नहीं",
        proposals="क्या आप चाहते, क्या मैं",
        closing="और कुछ, कैसे मदद",
        done="काम कर रहा है, काम करता है, ठीक हो गया, हल हो गया, हल हो गई, समस्या हल हो गई, मदद मिली, बस इतना ही",
    ),
    "id": Words(
        pleasant="terima kasih, terima kasih banyak, makasih, trims, halo, hai, selamat pagi, selamat siang, selamat sore, "
        "selamat malam, sampai jumpa, bagus, hebat, mantap, sempurna, mengerti, paham, sama sama, maaf",
        fillers="banyak atas bantuannya bantuan anda kamu ya semua ini itu sangat sekali dan ok baik sekarang sudah",
        answers="ya, iya, tidak, ok, oke, baik, tentu, benar, tolong, silakan, belum",
        openers="dan, tapi, tetapi, juga, atau, lalu, kalau begitu, bagaimana dengan, bagaimana kalau, ya, tidak, masih, maksud saya",
        back="itu ini tersebut nya dia mereka sama masih lagi lain lainnya juga terakhir keduanya lebih",
        bare="yang di ke dari pada untuk dengan dalam adalah ada saya aku kamu anda kami kita apa siapa mana dimana kapan mengapa kenapa "
        "bagaimana berapa tidak bukan bisa dapat mau ingin harus akan sudah dan atau tapi",
        refusals="tidak, belum",
        proposals="apakah anda ingin, apakah kamu mau, haruskah saya",
        closing="ada lagi, yang bisa saya bantu",
        done="berfungsi, berhasil, selesai, teratasi, membantu, masalah selesai, masalah teratasi, tutup tiket, itu saja",
        whole="minggu ini, bulan ini, hari ini",
    ),
    "vi": Words(
        pleasant="cảm ơn, cám ơn, cảm ơn bạn, cảm ơn nhiều, xin chào, chào, chào bạn, tạm biệt, tuyệt, tuyệt vời, hoàn hảo, hay quá, "
        "tốt quá, hiểu rồi, xin lỗi",
        fillers="bạn nhiều rất vì đã giúp đỡ tôi mình ạ nhé anh chị em rồi tốt ok vâng và quá",
        answers="vâng, có, không, ừ, ok, được, đúng, đồng ý, chưa, làm đi",
        openers="và, nhưng, cũng, hoặc, vậy, vậy thì, còn, thế còn, thế, vâng, không, vẫn",
        back="nó đó này kia ấy họ vẫn cũng lại khác cuối hơn",
        bare="là có của tôi bạn mình chúng ta cho với trong ở từ đến và hoặc không được sẽ đã đang thì mà gì ai đâu khi nào sao thế "
        "bao nhiêu cái một các những muốn cần phải",
        refusals="không, chưa",
        proposals="bạn có muốn",
        closing="gì khác không, gì nữa không, giúp gì",
        done="hoạt động, được rồi, đã giải quyết, giải quyết xong, đã sửa, hữu ích, vậy là xong",
        whole="hôm nay, tuần này, tháng này",
    ),
    "ja": Words(
        pleasant="ありがとうございます, ありがとうございました, ありがとう, どうもありがとう, どうも, 助かりました, 助かった, こんにちは, こんばんは, "
        "おはようございます, おはよう, おやすみ, さようなら, またね, お疲れ様です, お疲れ様でした, お疲れさまです, すごい, 素晴らしい, 完璧です, 完璧, "
        "わかりました, 分かりました, 了解です, 了解しました, 了解, 承知しました, なるほど, よろしくお願いします, すみません",
        fillers="本当に とても 大変 です ね よ はい ました もう さん 、",
        answers="はい, いいえ, うん, いや, お願いします, そうです, 大丈夫です, まだです, オーケー",
        openers="でも, しかし, また, それで, それでは, では, じゃあ, じゃ, あと, それと, それから, まだ, はい, いいえ, つまり, やっぱり",
        back="それ これ あれ その この あの そこ まだ もう一度 もっと 同じ 他の 別の 最後の",
        bare="は が を に で と も の へ から まで です ます ました でした ください か ね よ する して した ない なぜ どう いつ どこ だれ 何",
        refusals="いいえ, いや, まだです",
        proposals="しましょうか, いかがですか",
        closing="他に, ほかに, お手伝い",
        done="動きました, 動いています, 直りました, 解決しました, 助かりました, できました, クローズしてください, 以上です",
        whole="その後",
        spaced=False,
    ),
    "zh": Words(
        pleasant="谢谢您, 谢谢你, 谢谢, 謝謝您, 謝謝你, 謝謝, 多谢, 多謝, 感谢, 感謝, 非常感谢, 非常感謝, 辛苦了, 你好, 您好, 早上好, 晚上好, "
        "下午好, 早安, 晚安, 再见, 再見, 拜拜, 太好了, 太棒了, 很好, 完美, 明白了, 知道了, 了解了, 懂了, 不客气, 不好意思, 抱歉, 收到, 嗨",
        fillers="非常 的 帮助 幫助 你 您 了 啊 吧 呢 好 很 太 都 是 一切 我 们 、",
        answers="是的, 是, 不是, 不, 好的, 好, 对, 對, 可以, 没错, 当然, 請, 请, 嗯, 还没有, 行",
        openers="那么, 那, 但是, 但, 可是, 还有, 還有, 而且, 或者, 然后, 然後, 另外, 不过, 是的, 好的, 还是, 其实, 我的意思是",
        back="它 这个 那个 這個 那個 这 那 這 他 她 他们 还 還 再 又 同样 另一个 其他 别的 最后一个",
        bare="的 了 是 在 我 你 您 有 不 没 吗 嗎 呢 吧 把 被 和 与 也 都 就 要 会 能 可以 怎么 怎麼 什么 什麼 哪 谁 几 多少 为什么 請 请",
        refusals="不是, 不, 还没有",
        proposals="您想要, 你想要, 需要我, 要我",
        closing="还有什么, 還有什麼, 还需要, 帮您",
        done="好了, 解决了, 可以用了, 修好了, 有帮助, 帮到我了, 问题解决了, 可以关闭, 就这些",
        spaced=False,
    ),
    "ko": Words(
        pleasant="감사합니다, 감사해요, 고맙습니다, 고마워요, 고마워, 정말 감사합니다, 안녕하세요, 안녕, 안녕히 계세요, 안녕히 가세요, 수고하세요, "
        "수고하셨습니다, 좋아요, 완벽해요, 훌륭해요, 최고예요, 알겠습니다, 알겠어요, 알았어요, 죄송합니다, 반갑습니다",
        fillers="정말 너무 많이 도움 도와주셔서 도움이 됐어요 되었습니다 네 이제 모두 진짜 아주",
        answers="네, 예, 아니요, 아니오, 응, 좋아요, 맞아요, 그래요, 물론이죠, 부탁합니다, 부탁해요, 아직",
        openers="그리고, 하지만, 근데, 그런데, 그럼, 그러면, 또, 아직도, 네, 아니요, 그것도, 혹시 그럼",
        back="그것 그거 이것 이거 저것 그 이 그건 이건 아직 아직도 다시 같은 다른 더 마지막",
        bare="은 는 이 가 을 를 에 에서 의 와 과 도 로 으로 제 내 저 나 우리 무엇 뭐 누구 어디 언제 왜 어떻게 얼마 몇 있나요 인가요 해줘 해주세요 "
        "주세요 수 있어요",
        refusals="아니요, 아니오, 아직",
        proposals="할까요, 원하시나요",
        closing="더 필요한, 다른 도움, 도와드릴까요",
        done="작동합니다, 작동해요, 해결됐어요, 해결되었습니다, 됩니다, 돼요, 도움이 됐어요, 도움이 되었습니다, 이상입니다",
    ),
}
