import { type ChildProcess, spawn } from "node:child_process";
import { publicFolder } from "../../testkit/publicFolder.js";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runUnseen } from "../../testkit/unseen.js";

const HERE = __dirname;
const ENVIRONMENT = join(HERE, "../../.cache/application");

/** A Django site under gunicorn. */
export interface Application {
  stop(): Promise<void>;
}

export interface ApplicationOptions {
  readonly port: number;
  /** What the front end renders for the settings file: goes between the secret-key item and DATABASES (service 2.3). */
  readonly items: string;
  /** Where uploads go: the media directory that the proxy serves. */
  readonly mediaDirectory: string;
  readonly user: { readonly name: string; readonly password: string };
  /** Sessions are in this server's memory, and cookies go over plain HTTP too. Default: in its database, over TLS alone. */
  readonly sessionsInMemory?: boolean;
}

export async function startApplication(application: ApplicationOptions): Promise<Application> {
  const python = environment();
  const folder = publicFolder("portico-application-");
  writeFileSync(join(folder, "application_settings.py"), settings(folder, application));
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONPATH: `${folder}:${HERE}` };
  const { name, password } = application.user;
  const { port } = application;
  // Each worker has a memory of its own.
  const workers = application.sessionsInMemory === true ? ["1", "--threads", "4"] : ["2"];
  const options = ["--bind", `127.0.0.1:${port}`, "--workers", ...workers, "--chdir", folder];
  const args = [join(HERE, "application.py"), name, password, ...options];
  const child = spawn(join(python, "python"), args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
  await listening(port, child, () => stderr);
  return {
    stop: async () => {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The settings file as an administrator has it, with our items in their place. */
function settings(
  folder: string,
  { items, mediaDirectory, sessionsInMemory = false }: ApplicationOptions,
): string {
  const inMemory = `SESSION_ENGINE = "django.contrib.sessions.backends.cache"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
`;
  return `ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "application"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
# Only for tests: the default one takes half a second for a password, and that is its purpose.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates"}]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
${sessionsInMemory ? inMemory : "SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True\n"}MEDIA_ROOT = ${JSON.stringify(mediaDirectory)}
SECRET_KEY = ${JSON.stringify(randomBytes(32).toString("hex"))}
${items}DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ${JSON.stringify(join(folder, "database"))}}}
`;
}

/**
 * Makes a Python environment with what the application needs, unless it is there: some twenty seconds, and from an
 * index.
 */
export async function prepareApplication(): Promise<void> {
  if (isPrepared()) return;
  rmSync(ENVIRONMENT, { recursive: true, force: true });
  mkdirSync(ENVIRONMENT, { recursive: true });
  await runUnseen("python3", ["-m", "venv", ENVIRONMENT]);
  await runUnseen(join(ENVIRONMENT, "bin/pip"), ["install", "--quiet", "-r", REQUIREMENTS]);
  copyFileSync(REQUIREMENTS, MADE_FOR);
}

const REQUIREMENTS = join(HERE, "requirements.txt");
/** Copied last, so that an environment that was cut off is not taken for a whole one. */
const MADE_FOR = join(ENVIRONMENT, "made-for.txt");

const isPrepared = (): boolean =>
  existsSync(MADE_FOR) && readFileSync(MADE_FOR, "utf8") === readFileSync(REQUIREMENTS, "utf8");

/** Its programs. */
function environment(): string {
  if (isPrepared()) return join(ENVIRONMENT, "bin");
  throw new Error(
    "Django is not installed: `npm test -- proof/` does that first, or: `npx tsx proof/prepare.ts proof/`",
  );
}

async function listening(port: number, child: ChildProcess, stderr: () => string): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) break;
    const socket = connect(port, "127.0.0.1");
    const open = await Promise.race([
      once(socket, "connect").then(() => true),
      once(socket, "error").then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (open) return;
    await sleep(100);
  }
  throw new Error(`the application does not start: ${stderr()}`);
}
