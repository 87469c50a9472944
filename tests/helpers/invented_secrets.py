"""Secrets that nobody has: each is put together here when the tests run, so that no scanner of repositories finds one."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass

_UPPER, _HEX = string.ascii_uppercase + string.digits, "0123456789abcdef"
_BOTH = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Planted:
    """A text that holds a secret, and the secret."""

    kind: str
    text: str
    secret: str


class Invented:
    """Invents secrets of every kind; another seed invents others."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def of(self, length: int, letters: str = _BOTH) -> str:
        """Return random letters, among them a digit and a letter."""
        some = "".join(self._random.choice(letters) for _ in range(length - 2))
        return some + "7" + ("a" if "a" in letters else "A")

    def tokens(self) -> list[Planted]:
        """Return the tokens that are known by their form alone."""
        of = self.of
        made = [
            ("aws-key", "AK" + "IA" + of(16, _UPPER)),
            ("aws-key", "AS" + "IA" + of(16, _UPPER)),
            *(("github-token", f"gh{one}_" + of(36)) for one in "pousr"),
            ("github-token", "github" + "_pat_" + of(22) + "_" + of(59)),
            ("gitlab-token", "gl" + "pat-" + of(20)),
            ("slack-token", "xo" + "xb-" + of(12, string.digits + "a") + "-" + of(24)),
            ("slack-token", "xa" + "pp-1-" + of(11, _UPPER) + "-" + of(40)),
            ("google-key", "AI" + "za" + of(35)),
            ("google-oauth", "GOC" + "SPX-" + of(28)),
            ("google-oauth", "ya" + "29." + of(60)),
            ("anthropic-key", "sk-" + "ant-api03-" + of(80)),
            ("openrouter-key", "sk-" + "or-v1-" + of(64, _HEX)),
            ("openai-key", "sk-" + of(48)),
            ("openai-key", "sk-" + "proj-" + of(60) + "_" + of(20)),
            ("stripe-key", "sk_" + "live_" + of(24)),
            ("stripe-key", "rk_" + "test_" + of(24)),
            ("webhook-secret", "whs" + "ec_" + of(32)),
            ("square-token", "sq0" + "atp-" + of(22)),
            ("twilio-key", "S" + "K" + of(32, _HEX)),
            ("sendgrid-key", "S" + "G." + of(22) + "." + of(43)),
            ("mailgun-key", "ke" + "y-" + of(32, _HEX)),
            ("mailchimp-key", of(32, _HEX) + "-us" + "12"),
            ("npm-token", "np" + "m_" + of(36)),
            ("pypi-token", "py" + "pi-" + of(80)),
            ("huggingface-token", "h" + "f_" + of(34)),
            ("docker-token", "dck" + "r_pat_" + of(27)),
            ("digitalocean-token", "do" + "p_v1_" + of(64, _HEX)),
            ("shopify-token", "sh" + "pat_" + of(32, _HEX)),
            ("databricks-token", "da" + "pi" + of(32, _HEX)),
            ("vault-token", "hv" + "s." + of(40)),
            ("terraform-token", of(14) + ".atlas" + "v1." + of(60)),
            ("grafana-token", "gl" + "sa_" + of(32) + "_" + of(8, _HEX)),
            ("newrelic-key", "NR" + "AK-" + of(27, _UPPER)),
            ("linear-key", "lin" + "_api_" + of(40)),
            ("notion-token", "nt" + "n_" + of(46)),
            ("figma-token", "fi" + "gd_" + of(40)),
            ("groq-key", "gs" + "k_" + of(52)),
            ("perplexity-key", "pp" + "lx-" + of(48)),
            ("replicate-token", "r" + "8_" + of(37)),
            ("xai-key", "xa" + "i-" + of(80)),
            ("langsmith-key", "ls" + "v2_pt_" + of(32, _HEX) + "_" + of(10, _HEX)),
            ("pinecone-key", "pc" + "sk_" + of(60)),
            ("tavily-key", "tv" + "ly-" + of(32)),
            ("postman-key", "PM" + "AK-" + of(24, _HEX) + "-" + of(34, _HEX)),
            ("sentry-token", "snt" + "ryu_" + of(64, _HEX)),
            ("atlassian-token", "ATA" + "TT3" + of(100)),
            ("supabase-token", "sb" + "p_" + of(40, _HEX)),
            ("planetscale-token", "psc" + "ale_tkn_" + of(40)),
            ("age-key", "AGE-SEC" + "RET-KEY-1" + of(58, _UPPER)),
            ("jwt", "ey" + "J" + of(30) + ".ey" + "J" + of(60) + "." + of(43)),
            ("slack-webhook", "hooks.sl" + "ack.com/services/T" + of(8, _UPPER) + "/B" + of(8, _UPPER) + "/" + of(24)),
            ("discord-webhook", "/api/web" + "hooks/" + "1" * 18 + "/" + of(68)),
        ]
        telegram = "A" + "A" + of(33)
        return [
            *(Planted(kind, token, token) for kind, token in made),
            Planted("telegram-token", f"{'1' * 10}:{telegram}", telegram),
            self.private_key(),
        ]

    def private_key(self, *, newline: str = "\n", kind: str = "RSA ") -> Planted:
        """Return a private key, with lines of 64 characters."""
        lines = [self.of(64) for _ in range(6)]
        name = kind + "PRIVATE" + " KEY"
        text = newline.join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"])
        return Planted("private-key", text, lines[2])

    def announced(self) -> list[Planted]:
        """Return the secrets that are known by what stands before them."""
        password, key, word = f"{self.of(9)}!{self.of(4)}", self.of(40), self.of(24)
        signature, hashed = self.of(44), self.of(78)
        return [
            Planted("password", f"password={password}", password),
            Planted("password", f"Password: {password}", password),
            Planted("password", f'{{"password": "{password}"}}', password),
            Planted("password", f"export DB_PASSWORD={password}", password),
            Planted("password", f"Server=db;User Id=sa;Pwd={password};Encrypt=yes", password),
            Planted("password", f"the password is {password}", password),
            Planted("password", f"mytool --password {password}", password),
            Planted("password", f"machine example.org login ann password {password}", password),
            Planted("password", f"密码：{password}", password),
            Planted("url-password", f"postgresql://ann:{password}@db.example.org/cases", password),
            Planted("url-password", f"mongodb+srv://ann:{word}@cluster.example.org", word),
            Planted("authorization", f"Authorization: Bearer {word}", word),
            Planted("authorization", f"authorization: Basic {word}==", word),
            Planted("authorization", f"curl -H 'Authorization: token {word}'", word),
            Planted("api-key", f"x-api-key: {word}", word),
            Planted("api-key", f"aws_secret_access_key = {key}", key),
            Planted("api-key", f"DefaultEndpointsProtocol=https;AccountKey={key}==;EndpointSuffix=core", key),
            Planted("api-key", f'"apiKey": "{word}"', word),
            Planted("token", f"//registry.example.org/:_authToken={word}", word),
            Planted("token", f"refresh_token={word}&grant_type=refresh", word),
            Planted("secret-value", f'"client_secret":"{word}"', word),
            Planted("password-hash", f"ann:$6$salt$ab/cd.{hashed}:19000:0:99999:7:::", hashed),
            Planted("azure-signature", f"https://example.org/c?sv=2024&si{'g'}={signature}%3D", signature),
        ]

    def every(self) -> list[Planted]:
        """Return at least one secret of each kind."""
        return [*self.tokens(), *self.announced()]


def traces_of(one: Planted) -> list[bytes]:
    """Return pieces of a secret: none of them may be found anywhere."""
    secret = one.secret
    return [piece.encode() for piece in {secret, secret[:12] if len(secret) > 20 else secret, secret[-12:]}]
