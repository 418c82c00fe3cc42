"""Credentials are found and masked; placeholders are left alone.

The values are put together at run time, so that no scanner stumbles over this file.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.guard.secrets import (
    entropy,
    find_secrets,
    looks_real,
    mask,
    mask_lines,
    mask_text,
    shown_line,
)

ALPHABET = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zAbCdEfGhIjKlMnOpQrStUvWxYz"
HEX = "3f9a1c7e5b2d8064" * 4


def body(length: int) -> str:
    return (ALPHABET * (length // len(ALPHABET) + 1))[:length]


@pytest.mark.parametrize(
    ("rule", "token"),
    [
        ("secret-aws-key", "AKIA" + "QYLPMN5HXXZ2ABCD"),
        ("secret-github-token", "ghp_" + body(36)),
        ("secret-github-pat", "github_pat_" + body(70)),
        ("secret-gitlab-token", "glpat-" + body(20)),
        ("secret-openai-key", "sk-proj-" + body(60)),
        ("secret-anthropic-key", "sk-ant-api03-" + body(80)),
        ("secret-google-api-key", "AIza" + body(35)),
        ("secret-slack-token", "xoxb-" + "123456789012-" + body(24)),
        ("secret-stripe-key", "sk_live_" + body(24)),
        ("secret-sendgrid-key", "SG." + body(22) + "." + body(43)),
        ("secret-npm-token", "npm_" + body(36)),
        ("secret-twilio-key", "SK" + HEX[:32]),
        ("secret-jwt", "eyJ" + body(20) + ".eyJ" + body(30) + "." + body(43)),
    ],
)
def test_provider_tokens(rule: str, token: str) -> None:
    line = f"client = connect('{token}')"
    assert [secret.rule for secret in find_secrets(line)] == [rule]
    assert token not in mask(line)
    assert mask(line).startswith("client = connect('" + token[:4])


@pytest.mark.parametrize(
    "line",
    [
        "password = 'kX9#" + "mP2$vL5q'",
        '  DB_PASSWORD: str = "tR7!' + 'pQ4zW9"',
        "config['secret_key'] = '" + HEX[:40] + "'",
        '{"api_key": "' + body(32) + '"}',
        "url = 'postgres://app:tR7pQ4" + "zW9x@db.internal/app'",
        "-----BEGIN RSA PRIVATE " + "KEY-----",
    ],
)
def test_real_looking_values(line: str) -> None:
    assert list(find_secrets(line))


@pytest.mark.parametrize(
    "line",
    [
        "password = 'changeme'",
        "password = os.environ['DB_PASSWORD']",
        "password = 'your-password-here'",
        "TOKEN_URL = 'https://auth.example.com/oauth/token'",
        "api_key = '<your api key>'",
        "secret_name = 'DATABASE_PASSWORD'",
        "token = 'access_token'",
        "key = 'AKIAIOSFODNN7EXAMPLE'",
        "password = '{password}'",
        "raise ValueError('-----BEGIN PRIVATE KEY-----')",
        "url = 'postgres://user:{password}@host/db'",
    ],
)
def test_placeholders_are_left_alone(line: str) -> None:
    assert not list(find_secrets(line))


def test_the_name_of_a_key_is_shown_without_its_quotes() -> None:
    (found,) = find_secrets('config = {"password": "S3cr3t!Pass2024"}')
    assert found.what == "a literal for 'password'"


def test_looks_real() -> None:
    assert looks_real("kX9#" + "mP2$vL5q")
    assert not looks_real("short1!")
    assert not looks_real("AUTH_TOKEN_NAME")


def test_entropy_of_equal_characters_is_zero() -> None:
    assert entropy("aaaa") == 0
    assert entropy("ab") == 1


@pytest.mark.parametrize(
    "line",
    [
        "planetScaleToken=pscale_oauth_sgowbnpumm_iziwnvqjr8hegz1w4z09wrs6omu6l6wz",
        "token=" + "aB_" * 1_300,
        ("\"'pass" * 700)[:4_000],
        "a." * 2_000,
        "key:" * 1_000,
    ],
)
def test_no_line_costs_more_than_its_length(line: str) -> None:
    begun = time.process_time()
    list(find_secrets(line))
    assert time.process_time() - begun < 0.3


VALUE = "k7Zp2Qw9" + "Lx4Vb8Tn3Rj6Hd5M"


@pytest.mark.parametrize(
    "line",
    [
        f'API_TOKEN ?= "{VALUE}"',
        f'API_TOKEN ::= "{VALUE}"',
        f"$apiToken .= '{VALUE}';",
        f"  apiToken={VALUE.lower()}",
        f'{{"config.ini": "API_TOKEN={VALUE}\\nON=true"}}',
        f"export API_TOKEN={VALUE} && make",
        f"docker run -e DB_PASSWORD={VALUE} image",
        f"https://example.org/a?access_token={VALUE}&b=1",
        f"<apiToken>{VALUE}</apiToken>",
        f"client --api-key {VALUE} list",
        f"mysql -u root --password={VALUE}",
        f'#define DB_PASSWORD "{VALUE}"',
        f"CREATE USER app WITH PASSWORD '{VALUE}';",
        f"ALTER USER 'app'@'%' IDENTIFIED BY '{VALUE}';",
        f"curl -s -u 'app:{VALUE}' https://example.org",
        f'curl -H "Authorization: Bearer {VALUE}{VALUE}" https://example.org',
        f"smtps://app@example.org:{VALUE}@smtp.example.org:465",
        f'my_pw: "{VALUE}"',
        "token = '" + "A" * 22 + VALUE * 3 + "'",
    ],
)
def test_where_credentials_stand(line: str) -> None:
    assert any(find_secrets(line))
    assert VALUE not in mask(line)


@pytest.mark.parametrize(
    "line",
    [
        "RSAPrivateKey = rfc3447.RSAPrivateKey",
        "MLKEM1024P384PrivateKey = rust_openssl.hpke.MLKEM1024P384PrivateKey",
        'cmd = ["--mode=creds", "--output=json2A"]',
        "server: pass ``h11.SERVER`` here",
        "credentialsId: 'ff083f76-7804-4ef1-80e4-fe975bb9141b'",
        f'public_token = "{VALUE}"',
        f"csrf-token={VALUE}",
        "curl -u $USER:$PASSWORD https://example.org",
        'headers = {"Authorization": f"Bearer {token}"}',
        "client --api-key $API_KEY list",
        "password = 'aaaaaaaaaaaaaa1B'",
        "ALTER USER app IDENTIFIED BY '$1'",
    ],
)
def test_what_only_stands_there(line: str) -> None:
    assert not list(find_secrets(line))


BEGIN = "-----BEGIN RSA PRIVATE " + "KEY-----"
END = "-----END RSA PRIVATE " + "KEY-----"
BODY = "MIIEpAIBAAKCAQEA7bq3vHqU9d8Wq0mEw3yT1sX"


@pytest.mark.parametrize("frame", ["{}", '    "{}\\n"', "+{}", "  - {}"])
def test_the_body_of_a_private_key_is_masked(frame: str) -> None:
    key = [BEGIN, "Proc-Type: 4,ENCRYPTED", "", BODY, f"{BODY}+/", "Zm9v==", END, "total = 1"]
    lines = [frame.format(line) if line else "" for line in key]
    masked = mask_lines(lines)
    text = "\n".join(masked)
    assert BODY[4:] not in text
    assert "Zm9v==" not in text
    assert "Proc-Type" in text
    assert masked[-1] == lines[-1]
    assert mask_text("\n".join(lines)) == text
    shown = [shown_line(line, lines[:at]) for at, line in enumerate(lines)]
    assert BODY[4:] not in "".join(shown)
    assert [len(line) for line in shown] == [len(line) for line in lines]


def test_code_below_the_beginning_of_a_key_stays() -> None:
    for after in ("return text", "if it:", "x = base64decode(text)", "pass"):
        assert mask_lines([BEGIN, after]) == [mask(BEGIN), after]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=8))
def test_lines_without_a_key_are_masked_one_by_one(lines: list[str]) -> None:
    assert mask_lines(lines) == [mask(line) for line in lines]
