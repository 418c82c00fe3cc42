"""Lines with credentials and lines that only look like it, made by a program.

Tokens follow the forms that their issuers document and are random, so that none is real and no
scanner stumbles over this file.
"""

from __future__ import annotations

import random
import string
from typing import Final

LETTERS: Final = string.ascii_letters + string.digits
UPPER: Final = string.ascii_uppercase + string.digits
BASE32: Final = string.ascii_uppercase + "234567"
HEX: Final = "0123456789abcdef"
URL: Final = LETTERS + "-_"

# before, alphabet, length, after
PROVIDERS: Final = {
    "aws key id": ("AK" + "IA", BASE32, 16, ""),
    "aws temporary id": ("AS" + "IA", BASE32, 16, ""),
    "github classic": ("gh" + "p_", LETTERS, 36, ""),
    "github app": ("gh" + "s_", LETTERS, 36, ""),
    "github oauth": ("gh" + "o_", LETTERS, 36, ""),
    "github fine": ("github" + "_pat_11", LETTERS, 80, ""),
    "gitlab": ("gl" + "pat-", LETTERS, 20, ""),
    "gitlab runner": ("gl" + "rt-", LETTERS, 20, ""),
    "openai project": ("sk-" + "proj-", URL, 100, ""),
    "openai old": ("sk-", LETTERS, 48, ""),
    "anthropic": ("sk-" + "ant-api03-", URL, 93, "AA"),
    "groq": ("gs" + "k_", LETTERS, 52, ""),
    "hugging face": ("h" + "f_", string.ascii_letters, 34, ""),
    "google api": ("AI" + "za", URL, 35, ""),
    "google oauth": ("GOC" + "SPX-", URL, 28, ""),
    "google refresh": ("1/" + "/0", URL, 60, ""),
    "slack bot": ("xo" + "xb-2345678901-3456789012-", LETTERS, 24, ""),
    "slack user": ("xo" + "xp-2345678901-3456789012-4567890123-", HEX, 32, ""),
    "slack app": ("xa" + "pp-1-A0123BCDE-2345678901-", HEX, 64, ""),
    "slack webhook": (
        "https://hooks.slack.com/" + "services/T0",
        UPPER,
        9,
        "/B0AB12CD3/k8sJd73hGs9KfLq2Zx81PwQe",
    ),
    "stripe live": ("sk_" + "live_", LETTERS, 24, ""),
    "stripe restricted": ("rk_" + "live_", LETTERS, 99, ""),
    "stripe webhook": ("wh" + "sec_", LETTERS, 32, ""),
    "twilio account": ("S" + "K", HEX, 32, ""),
    "sendgrid": ("S" + "G.", URL, 22, ".k8sJd73hGs9KfLq2Zx81PwQek8sJd73hGs9KfLq2Zx8"),
    "mailgun": ("ke" + "y-", HEX, 32, ""),
    "mailchimp": ("", HEX, 32, "-us12"),
    "npm": ("np" + "m_", LETTERS, 36, ""),
    "pypi": ("pypi-" + "AgEIcHlwaS5vcmc", URL, 120, ""),
    "rubygems": ("ruby" + "gems_", HEX, 48, ""),
    "docker": ("dck" + "r_pat_", URL, 27, ""),
    "digitalocean": ("do" + "p_v1_", HEX, 64, ""),
    "heroku": ("HR" + "KU-AA", URL, 58, ""),
    "shopify": ("shp" + "at_", HEX, 32, ""),
    "square": ("sq" + "0atp-", URL, 22, ""),
    "dropbox": ("s" + "l.B", URL, 135, ""),
    "discord webhook": ("https://discord.com/api/" + "webhooks/123456789012345678/", URL, 68, ""),
    "telegram": ("1234567890" + ":AA", URL, 33, ""),
    "databricks": ("da" + "pi", HEX, 32, ""),
    "grafana": ("gl" + "sa_", LETTERS, 32, "_0a1b2c3d"),
    "new relic": ("NR" + "AK-", UPPER, 27, ""),
    "sentry": ("sntr" + "yu_", HEX, 64, ""),
    "linear": ("lin" + "_api_", LETTERS, 40, ""),
    "notion": ("nt" + "n_", LETTERS, 46, ""),
    "postman": ("PM" + "AK-", HEX, 24, "-0123456789abcdef0123456789abcdef01"),
    "vault": ("hv" + "s.", URL, 90, ""),
    "terraform": ("k8sJd73hGs9KfL" + ".atlas" + "v1.", URL, 67, ""),
    "azure storage": ("AccountName=a;Account" + "Key=", LETTERS + "+/", 86, "=="),
    "age": ("AGE-" + "SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, ""),
    "atlassian": ("ATA" + "TT3xFfGF0", URL, 183, ""),
    "airtable": ("patKd83hGs9KfLq2x.", HEX, 64, ""),
    "figma": ("fig" + "d_", URL, 40, ""),
    "perplexity": ("pp" + "lx-", LETTERS, 48, ""),
    "replicate": ("r" + "8_", LETTERS, 37, ""),
    "fly.io": ("FlyV1 fm" + "2_", LETTERS + "+/", 120, "="),
    "planetscale": ("ps" + "cale_tkn_", URL, 43, ""),
    "doppler": ("dp." + "pt.", LETTERS, 43, ""),
    "pulumi": ("pu" + "l-", HEX, 40, ""),
    "supabase": ("sb" + "p_", HEX, 40, ""),
    "cloudflare ca": ("v1" + ".0-", HEX, 24, "-" + HEX * 9 + "ab"),
    "jwt": (
        "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "J",
        LETTERS,
        40,
        ".k8sJd73hGs9KfLq2Zx81PwQek8sJd73hGs9KfLq2Zx8",
    ),
}
FRAMES: Final = (
    'client = Client("{}")',
    "  value: '{}'",
    "export SERVICE={}",
    'fetch(url, {{ headers: {{ Authorization: "Bearer {}" }} }});',
    "SERVICE={}",
    'curl -H "X-Auth: {}" https://api.service.io/v1',
    'service = "{}"  # rotate me',
)
NAMED: Final = (
    'password = "{}"',
    "PASSWORD = '{}'",
    'db_passwd = "{}"',
    'self.password = "{}"',
    'API_KEY: "{}",',
    'api_key = "{}"',
    'apiKey: "{}",',
    'const apiSecret = "{}";',
    "let accessToken = `{}`;",
    'var dbPassword string = "{}"',
    'dbPass := "{}"',
    'config["secret"] = "{}"',
    'app.config["SECRET_KEY"] = "{}"',
    "app.secret_key = '{}'",
    "'PASSWORD': '{}',",
    '"client_secret": "{}"',
    'connect(host, user="app", password="{}")',
    'conn = psycopg2.connect(dbname="a", user="b", password="{}", host="c")',
    'auth = ("admin", "{}")',
    'os.environ["DB_PASSWORD"] = "{}"',
    "export DB_PASSWORD='{}'",
    "DB_PASSWORD={}",
    "password: {}",
    "jdbc.password={}",
    'if password == "{}":',
    'private static final String PASSWORD = "{}";',
    'def connect(user, password="{}"):',
    'aws_secret_access_key = "{}"',
    'SECRET_TOKEN = b"{}"',
    'smtp.login("me@service.io", "{}")',
    "url = 'postgres://app:{}@db.service.io/app'",
    'dsn = "mysql+pymysql://root:{}@10.0.0.5:3306/shop"',
    'mongo = "mongodb+srv://app:{}@cluster0.mongodb.net/app"',
    '<add key="DbPassword" value="{}" />',
    "Server=db;Database=a;User Id=sa;Password={};",
    "encryption_key = '{}'",
    'passphrase = "{}"',
    'signingKey: "{}"',
)
SAFE: Final = (
    'password = ""',
    'password = "changeme"',
    'password = "your-password-here"',
    'PASSWORD = "<password>"',
    'api_key = "YOUR_API_KEY"',
    'api_key = "xxxxxxxxxxxxxxxxxxxxxxxx"',
    'api_key = "sk-..."',
    'token = os.environ["GITHUB_TOKEN"]',
    'token = os.getenv("GITHUB_TOKEN", "")',
    "const token = process.env.GITHUB_TOKEN;",
    'secret = vault.read("secret/data/app")',
    'password = getpass.getpass("Password: ")',
    'password = config.get("database", "password")',
    "password = request.form['password']",
    'password = "{password}"',
    'password = f"{user}-{suffix}"',
    'password = "${DB_PASSWORD}"',
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: !vault |",
    "DB_PASSWORD=$DB_PASSWORD",
    "DB_PASSWORD=${DB_PASSWORD:-changeme}",
    'password = "test1234"',
    'password = "dummy-password-1"',
    'TOKEN_URL = "https://login.service.io/oauth2/token"',
    'secret_name = "prod/database/password"',
    'token_type = "Bearer"',
    'password_field = "user_password"',
    'PASSWORD_RESET_TEMPLATE = "accounts/password_reset.html"',
    'password_regex = r"^[A-Za-z0-9]{8,}$"',
    'api_key_header = "X-Api-Key"',
    'AUTH_TOKEN_COOKIE = "auth_token_cookie"',
    'key = "AKIAIOSFODNN7EXAMPLE"',
    'secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
    'raise ValueError("The password must have at least 8 characters")',
    'logger.error("Invalid token: %s", token)',
    'label = "Password (8 characters or more)"',
    'parser.add_argument("--password", help="Password of the user")',
    "password = hashlib.sha256(raw.encode()).hexdigest()",
    'sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
    'integrity="sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"',
    "commit = '5543ca6d1fa2c9e8b7d6a5f4e3d2c1b0a9f8e7d6'",
    'uuid = "123e4567-e89b-12d3-a456-426614174000"',
    'url = "postgres://localhost/app"',
    'url = "postgres://user:password@localhost/app"',
    'url = f"postgres://{user}:{password}@{host}/app"',
    "url = 'https://example.com/a:b@c'",
    "git clone git@github.com:service/app.git",
    "token = csrf_token()",
    "tokens = tokenizer.encode('some text')",
    'EOS_TOKEN = "<|endoftext|>"',
    'special_token = "<|im_start|>"',
    'public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx"',
    'print("-----BEGIN CERTIFICATE-----")',
    'password_hash = "$2b$12$KIXQ"',
    'monkey = "banana-split-2000"',
    "keyword = 'for'",
    'primary_key = "user_id"',
    'sort_key = "created_at"',
    'foreign_key = "users.id"',
    'cache_key = "user:%s:profile:v2"',
    'key = "Ctrl+Shift+P"',
    "passed = '12 of 14'",
    'compass = "N45.5W122.6"',
    "password = None",
    "password: str",
    "password: string;",
    "def login(user: str, password: str) -> None:",
    "self.password = password",
    "SECRET_KEY = get_random_secret_key()",
    "api_key=settings.API_KEY,",
)


def secret_lines(seed: int = 3) -> list[tuple[str, str]]:
    """Kinds and lines that hold a credential."""
    rng = random.Random(seed)
    lines: list[tuple[str, str]] = []
    for number, (kind, (before, alphabet, size, after)) in enumerate(PROVIDERS.items()):
        token = before + "".join(rng.choices(alphabet, k=size)) + after
        lines.append((kind, FRAMES[number % len(FRAMES)].format(token)))
        lines.append((kind, FRAMES[(number + 3) % len(FRAMES)].format(token)))
    for frame in NAMED:
        in_url = "://" in frame
        for size in (10, 14, 20, 32):
            signs = "" if in_url or size == 32 else "!#%*+"
            lines.append((frame, frame.format(_password(rng, size, signs))))
    begin = "-----BEGIN {}PRIVATE " + "KEY-----"
    lines += [
        (f"key {kind}", begin.format(kind))
        for kind in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED ")
    ]
    lines.append(("key in a string", f'KEY = "{begin.format("RSA ")}\\nMIIEpAIBAAKCAQEA2a9x"'))
    lines.append(("key block", "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----"))
    return lines


def _password(rng: random.Random, size: int, signs: str) -> str:
    """A password as a manager makes it: at least one of each class."""
    parts = [
        rng.choice(string.ascii_lowercase),
        rng.choice(string.ascii_uppercase),
        rng.choice("23456789"),
    ]
    parts += [rng.choice(signs)] if signs else []
    parts += rng.choices(LETTERS + signs, k=size - len(parts))
    rng.shuffle(parts)
    return "".join(parts)
