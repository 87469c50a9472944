"""Where passwords and keys stand in files of configuration, in commands and in source code."""

from __future__ import annotations

import pytest
from invented_secrets import Invented

from cascade_memory.redaction import redact_secrets

WORD, KEY = "hunter2x" + Invented(71).of(5), Invented(72).of(24)
PASSWORDS = [
    # XML, YAML, TOML, lists of names and values
    "<server><password>{}</password></server>",
    "<db:adminPassword>{}</db:adminPassword>",
    "&lt;password&gt;{}&lt;/password&gt;",
    '<add key="DbPassword" value="{}"/>',
    '<property name="password" value="{}"/>',
    "<key>password</key>\n    <string>{}</string>",
    "password: |\n  {}",
    "db_password: >-\n    {}\n",
    'password = """\n{}\n"""',
    '{{"name": "DB_PASSWORD", "value": "{}"}}',
    "- name: DB_PASSWORD\n  value: {}",
    '- name: DB_PASSWORD\n  value: "{}"',
    'variable "db_password" {{\n  type = string\n  default = "{}"\n}}',
    # source code
    'password: str = "{}"',
    "password: Optional[str] = '{}'",
    'password = f"{}"',
    'password = r"{}"',
    'password = rb"{}"',
    'var password string = "{}"',
    'const password: string = "{}";',
    'let password: &str = "{}";',
    'char password[] = "{}";',
    'os.environ["DB_PASSWORD"] = "{}"',
    "config['password']='{}'",
    'os.getenv("DB_PASSWORD", "{}")',
    'process.env.DB_PASSWORD || "{}"',
    'builder.setPassword("{}")',
    "CREATE USER ann WITH PASSWORD '{}'",
    # commands
    "ENV DB_PASSWORD {}",
    "setx DB_PASSWORD {}",
    "curl -u ann:{} https://example.org",
    "curl -s --user 'ann:{}' https://example.org",
    "mysql -u root -p{} shop",
    "mysqldump -uroot -p'{}' shop",
    "sshpass -p {} ssh ann@host",
    "redis-cli -h host -a {} ping",
    "ldapsearch -x -D cn=ann -w {}",
    "openssl rsa -in key.pem -passin pass:{}",
    "docker login -u ann -p {} registry.example.org",
    "keytool -list -storepass {} -keystore store",
    "mongodump -u ann -p {} --host db",
    "unzip -P {} a.zip",
    "wget --user=ann --password={} https://example.org",
    "PGPASSWORD={} psql shop",
    "kubectl create secret generic db --from-literal=password={}",
    "jdbc:oracle:thin:ann/{}@db:1521",
    "jdbc:mysql://db/shop?user=ann&password={}",
    'Environment="DB_PASSWORD={}"',
    '$env:DB_PASSWORD = "{}"',
    "ansible_ssh_pass={}",
]
KEYS = [
    "<token>{}</token>",
    '{{"name": "x-api-key", "value": "{}"}}',
    '{{"key": "API_TOKEN", "value": "{}"}}',
    "client_secret: |\n  {}",
    'const apiKey: string = "{}"',
    'os.environ["API_TOKEN"] = "{}"',
    'api_key = r"{}"',
]
ORDINARY = [
    "<password>required</password> <password>${DB_PASSWORD}</password> <password/>",
    "<label for=password>Password</label><input type='password'>Enter8Chars</input>",
    "password: |\n  {{ vault.password }}",
    "password: str = 'required'; token: str | None = None; def f(password: str, name='Default1x'): ...",
    '{"name": "password", "type": "string", "value": null}',
    "- name: password\n  description: at least 8 characters",
    "curl -u ann https://example.org; curl -u $USER:$PASSWORD https://example.org; curl -H 'Accept: text/html'",
    "mysql -p shop; mysql -P3306 -h db; mysql -pshop --protocol=tcp".replace("-pshop ", ""),
    "ssh -p 2222 host; docker run -p 8080:80 image; mkdir -p /a/b1; grep -w word1 file; ls -a dir1; tar -p x1",
    "redis-cli -h host ping; openssl x509 -in cert1.pem; unzip a1.zip -d dir",
    "the password 'required'; password (optional); reset_password('user'); pass `verbosity=0`",
    "ENV PATH /usr/bin; env password reset2day",
    "a -p1 - b -u2",
    "price:$5.00 and $6$ and a:$1$",
]


@pytest.mark.parametrize("form", PASSWORDS)
def test_a_password_is_found_in_every_form(form: str):
    for text in (form.format(WORD), f"before\n{form.format(WORD)}\nafter"):
        clean = redact_secrets(text)
        assert WORD not in clean
        assert "[secret:" in clean
        assert redact_secrets(clean) == clean


@pytest.mark.parametrize("form", KEYS)
def test_a_key_is_found_in_every_form(form: str):
    assert KEY not in redact_secrets(form.format(KEY))


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_looks_like_such_a_form_stays(text: str):
    assert redact_secrets(text) == text


def test_an_encrypted_web_token_a_slack_cookie_and_a_key_in_base64_are_found():
    of = Invented(73).of
    encrypted = ".".join(["ey" + "J" + of(30), of(60), of(16), of(80), of(22)])
    direct = ".".join(["ey" + "J" + of(30), "", of(16), of(80), of(22)])
    cookie = "xo" + "xd-" + of(24) + "%2B" + of(30) + "%3D"
    key = "LS0tLS1CRUdJTiB" + "QUklWQVRF" + of(60) + "/" + of(60) + "=="
    for secret in (encrypted, direct, cookie, key):
        clean = redact_secrets(f"use {secret} here")
        assert clean.startswith("use [secret:"), clean
        assert secret[-20:] not in clean
