"""The kinds of secrets that are found, and the published forms of the tokens of well-known services."""

from __future__ import annotations

import functools
import itertools
import re
from typing import NamedTuple

from cascade_memory.redaction.hints import PERCENT

_A = "A-Za-z0-9"
_END = f"(?![{_A}])"
_SLASH = rf"(?:/|{PERCENT}2[Ff]|\\{{1,16}}(?:/|u002[Ff]))"


class Form(NamedTuple):
    """How the tokens of a kind look: a literal, what follows it, and how many characters before it belong to the token."""

    kind: str
    literal: str
    rest: str
    before: int = 0


def _alone(literal: str, inner: str = _A) -> str:
    r"""Return a pattern to stand after ``literal``, which matches only if the literal begins a word and is not a part of one.

    ``\b`` would not do: it sees no boundary beside Chinese text. The letter before the literal may also end an escape, such as
    %3D or \n.
    """
    escapes = ("%[0-9A-Fa-f]{2}", "%25[0-9A-Fa-f]{2}", r"\\[nrt]", r"\\u[0-9A-Fa-f]{4}")
    return "|".join([f"(?:(?<![{inner}]{literal})", *(f"(?<={escape}{literal})" for escape in escapes)]) + ")"


def _forms(kind: str, literals: str, rest: str, *, alone: bool = False) -> list[Form]:
    return [Form(kind, one, (_alone(one) if alone else "") + rest) for one in literals.split()]


# Within a run.
IN_RUNS: tuple[Form, ...] = (
    *_forms("aws-key", "AKIA ASIA", f"[A-Z0-9]{{16}}{_END}"),
    *_forms("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", f"[{_A}_]{{36,}}"),
    *_forms("gitlab-token", "glpat- glptt- gldt- glrt- glcbt- glagent- gloas- glimt- glsoat- glft-", f"[{_A}_-]{{20,}}"),
    *_forms("slack-token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", f"[{_A}-]{{10,}}"),
    *_forms("google-key", "AIza", f"[{_A}_-]{{35}}"),
    *_forms("google-oauth", "GOCSPX-", f"[{_A}_-]{{28}}"),
    *_forms("anthropic-key", "sk-ant-", f"[{_A}_-]{{20,}}"),
    *_forms("openrouter-key", "sk-or-v1-", "[0-9a-f]{40,}"),
    *_forms("openai-key", "sk-proj- sk-svcacct- sk-admin-", f"[{_A}_-]{{20,}}"),
    *_forms("openai-key", "sk-", f"[{_A}]{{32,}}", alone=True),
    *_forms("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", f"[{_A}]{{16,}}"),
    *_forms("webhook-secret", "whsec_", f"[{_A}]{{24,}}"),
    *_forms("square-token", "sq0atp- sq0csp- sq0idp-", f"[{_A}_-]{{22,}}"),
    *_forms("twilio-key", "SK", f"[0-9a-f]{{32}}{_END}", alone=True),
    *_forms("mailgun-key", "key-", f"[0-9a-f]{{32}}{_END}", alone=True),
    *_forms("npm-token", "npm_", f"[{_A}]{{36}}{_END}"),
    *_forms("pypi-token", "pypi-", f"[{_A}_-]{{50,}}"),
    *_forms("huggingface-token", "hf_", f"[{_A}]{{30,}}", alone=True),
    *_forms("docker-token", "dckr_pat_ dckr_oat_", f"[{_A}_-]{{20,}}"),
    *_forms("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", "[0-9a-f]{64}"),
    *_forms("shopify-token", "shpat_ shpca_ shppa_ shpss_", "[0-9A-Fa-f]{32}"),
    *_forms("databricks-token", "dapi", "[0-9a-f]{32}(?:-[0-9])?"),
    *_forms("grafana-token", "glsa_ glc_", f"[{_A}_]{{32,}}"),
    *_forms("newrelic-key", "NRAK-", "[A-Z0-9]{27}"),
    *_forms("linear-key", "lin_api_ lin_oauth_", f"[{_A}]{{32,}}"),
    *_forms("notion-token", "ntn_ secret_", f"[{_A}]{{40,}}", alone=True),
    *_forms("figma-token", "figd_", f"[{_A}_-]{{36,}}"),
    *_forms("telegram-token", "AA", f"(?:(?<=[0-9]{{8}}:AA)|(?<=[0-9]{{8}}%3[Aa]AA)|(?<=[0-9]{{8}}%253[Aa]AA))[{_A}_-]{{33}}"),
    *_forms("groq-key", "gsk_", f"[{_A}]{{40,}}"),
    *_forms("perplexity-key", "pplx-", f"[{_A}]{{40,}}"),
    *_forms("replicate-token", "r8_", f"[{_A}]{{37,}}", alone=True),
    *_forms("xai-key", "xai-", f"[{_A}]{{60,}}"),
    *_forms("langsmith-key", "lsv2_pt_ lsv2_sk_", "[0-9a-f]{32}_[0-9a-f]{10}"),
    *_forms("pinecone-key", "pcsk_", f"[{_A}_]{{40,}}"),
    *_forms("tavily-key", "tvly-", f"[{_A}_-]{{24,}}"),
    *_forms("postman-key", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}"),
    *_forms("sentry-token", "sntrys_ sntryu_", f"[{_A}_-]{{60,}}"),
    *_forms("atlassian-token", "ATATT3", f"[{_A}_-]{{60,}}"),
    *_forms("supabase-token", "sbp_ sbv_", "[0-9a-f]{40}"),
    *_forms("planetscale-token", "pscale_tkn_ pscale_oauth_ pscale_pw_", f"[{_A}_-]{{32,}}"),
    *_forms("age-key", "AGE-SECRET-KEY-1", "[0-9A-Z]{58}"),
)

# Not within one run: there are other characters in them. Looked for only where there is a run.
AROUND_RUNS: tuple[Form, ...] = (
    # Once for each run, however often it says eyJ.
    Form(
        "jwt",
        "eyJ",
        _alone("eyJ", f"{_A}_-")  # an encrypted one has five parts
        + f"[{_A}_-]{{10,}}\\.(?:eyJ[{_A}_-]{{8,}}\\.[{_A}_-]*|[{_A}_-]*(?:\\.[{_A}_-]{{8,}}){{3}})",
    ),
    Form("slack-token", "xoxd-", f"[{_A}%/+_-]{{10,}}=*"),
    # "-----BEGIN ... PRIVATE KEY" in base64
    Form("private-key", "LS0tLS1CRUdJTiB", f"(?:SU0Eg|QUklWQVRF|FQyBQ|PUEVOU1NI|FTkNSWVBURUQ)[{_A}+/_-]{{20,}}=*"),
    Form("sendgrid-key", "SG.", f"[{_A}_-]{{16,64}}\\.[{_A}_-]{{16,128}}"),
    Form("google-oauth", "ya29.", f"[{_A}_-]{{20,}}"),
    *_forms("vault-token", "hvs. hvb. hvr.", f"[{_A}_-]{{20,}}"),
    Form("terraform-token", ".atlasv1.", f"(?<=[{_A}]{{14}}\\.atlasv1\\.)[{_A}_-]{{40,}}", before=14),
    Form("mailchimp-key", "-us", f"(?<=[0-9a-f]{{32}}-us)[0-9]{{1,2}}{_END}", before=32),
    Form("slack-webhook", "hooks.slack.com", f"{_SLASH}(?:services|workflows|triggers)(?:{_SLASH}[{_A}_-]+)+"),
    Form("discord-webhook", "webhooks", f"{_SLASH}[0-9]{{15,22}}{_SLASH}[{_A}_-]{{40,}}"),
    *_forms("azure-signature", "sig= sig%3D sig%3d sig%253D sig\\u003d sig\\u003D", f"[{_A}%/+_-]{{40,}}=*"),
)

PRIVATE_KEY, URL_PASSWORD, HEADER, PASSWORD_HASH = "private-key", "url-password", "authorization", "password-hash"
PASSWORD, API_KEY, TOKEN, SECRET = "password", "api-key", "token", "secret-value"
WEAK = (PASSWORD, API_KEY, TOKEN, SECRET, HEADER, URL_PASSWORD)  # another form that fits says more than these
_FORMS = (*IN_RUNS, *AROUND_RUNS)
_OTHERS = (PRIVATE_KEY, URL_PASSWORD, HEADER, PASSWORD_HASH, PASSWORD, API_KEY, TOKEN, SECRET)
KINDS: tuple[str, ...] = tuple(dict.fromkeys([*(form.kind for form in _FORMS), *_OTHERS]))


def _any_of(forms: tuple[Form, ...]) -> re.Pattern[bytes]:
    """Compile one pattern for all forms. Those with the same first letter stand together, so that most are never tried."""
    by_letter = itertools.groupby(sorted(forms, key=lambda form: form.literal[0]), key=lambda form: form.literal[0])
    branches = [f"{letter}(?:{'|'.join(re.escape(one.literal[1:]) + one.rest for one in same)})" for letter, same in by_letter]
    return re.compile("|".join(branches).encode())


@functools.cache
def in_run() -> re.Pattern[bytes]:
    """Return the pattern of all tokens within a run of letters, digits, _ and -. It is compiled at the first such run."""
    return _any_of(IN_RUNS)


@functools.cache
def around_runs() -> tuple[tuple[Form, re.Pattern[str]], ...]:
    """Return the pattern of each token that also has characters outside of a run."""
    return tuple((form, re.compile(re.escape(form.literal) + form.rest)) for form in AROUND_RUNS)


def kind_of(token: bytes) -> str:
    """Return the kind of a token that ``in_run`` has found: the longest literal that it begins with decides."""
    text = token.decode()
    return max((form for form in IN_RUNS if text.startswith(form.literal)), key=lambda form: len(form.literal)).kind
