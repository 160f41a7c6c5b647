import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type IniItem, type PythonItem, storedItems } from "../../src/model/index.js";
import {
  type ApplicationSettingsInput,
  applicationSettingsFiles,
  applicationSettingsValues,
} from "../../src/applications/index.js";

/** Values of a front end at https://files.example.org. */
export function wantedValues(input: Partial<ApplicationSettingsInput> = {}) {
  return applicationSettingsValues({
    origins: [{ scheme: "https", host: "files.example.org", port: 443 }],
    pathPrefix: "sync",
    enableSettingsViaWeb: false,
    fileServerHost: "127.0.0.1",
    fileServerPort: 8082,
    ...input,
  });
}

/** Its files, and what they should say. */
export const wantedFiles = (
  paths = { networkDaemon: "/a", webApplication: "/b", fileServer: "/c" },
  input: Partial<ApplicationSettingsInput> = {},
) => applicationSettingsFiles(wantedValues(input), paths);

const [daemon, web, server] = wantedFiles();
export const URL_ITEM = daemon!.items as readonly IniItem[];
export const WEB_ITEMS = web!.items as readonly PythonItem[];
export const HOST_PORT = server!.items as readonly IniItem[];
/** What the module has no items of, and some installations set there. */
export const ELSEWHERE = storedItems({ files: [daemon!] });

/** A module's names and their values as Python sees them (`repr` of what is not JSON), or its error. */
export type Evaluated = { readonly names: Readonly<Record<string, unknown>> } | { readonly error: string };

/** Runs modules with the real Python, all in one process. */
export function evaluate(sources: readonly (string | Buffer)[]): Evaluated[] {
  const folder = mkdtempSync(join(tmpdir(), "portico-python-"));
  try {
    const files = sources.map((source, i) => {
      mkdirSync(join(folder, String(i)));
      const file = join(folder, String(i), "settings.py");
      writeFileSync(file, source);
      return file;
    });
    const out = execFileSync("python3", ["-c", EVALUATE], {
      input: JSON.stringify(files),
      maxBuffer: 1 << 28,
      stdio: ["pipe", "pipe", "ignore"],
    });
    return JSON.parse(out.toString()) as Evaluated[];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const EVALUATE = `
import contextlib, io, json, runpy, sys, types
def plain(value):
    try:
        json.dumps(value)
        return value
    except (TypeError, ValueError):
        pass
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, types.FunctionType):
        return ["function", value.__name__]
    if isinstance(value, type):
        return ["class", value.__name__, {k: plain(v) for k, v in vars(value).items() if not k.startswith("__")}]
    return repr(value).split(" at 0x")[0]
results = []
for path in json.load(sys.stdin):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            module = runpy.run_path(path)
        results.append({"names": {k: plain(v) for k, v in module.items() if not (k.startswith("__") and k.endswith("__"))}})
    except BaseException as e:
        results.append({"error": type(e).__name__ + ": " + str(e)})
json.dump(results, sys.stdout)
`;

/** What Python's configparser reads, sections and keys in order; or its error. */
export function parseIni(sources: readonly string[]): Record<string, unknown>[] {
  const out = execFileSync("python3", ["-c", PARSE_INI], {
    input: JSON.stringify(sources),
    maxBuffer: 1 << 28,
  });
  return JSON.parse(out.toString()) as Record<string, unknown>[];
}

const PARSE_INI = `
import configparser, io, json, sys
results = []
for text in json.load(sys.stdin):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        parser.read_file(io.StringIO(text.lstrip("\\ufeff"), newline=None))
        results.append({s: dict(parser.items(s)) for s in parser.sections()})
    except configparser.Error as e:
        results.append({"error": type(e).__name__})
json.dump(results, sys.stdout)
`;

/** What GLib's GKeyFile reads, by groups; undefined where it refuses the file. */
export function parseKeyFile(
  sources: readonly string[],
): (Record<string, Record<string, string>> | undefined)[] {
  const out = execFileSync("python3", ["-c", PARSE_KEY_FILE], {
    input: JSON.stringify(sources),
    maxBuffer: 1 << 28,
  });
  return (JSON.parse(out.toString()) as (Record<string, Record<string, string>> | null)[]).map(
    (r) => r ?? undefined,
  );
}

const PARSE_KEY_FILE = `
import ctypes, json, sys
glib = ctypes.CDLL("libglib-2.0.so.0")
p, s = ctypes.c_void_p, ctypes.c_char_p
def function(name, result, *arguments):
    f = getattr(glib, name)
    f.restype, f.argtypes = result, arguments
    return f
new = function("g_key_file_new", p)
load = function("g_key_file_load_from_data", ctypes.c_int, p, s, ctypes.c_size_t, ctypes.c_int, p)
groups = function("g_key_file_get_groups", ctypes.POINTER(s), p, p)
keys = function("g_key_file_get_keys", ctypes.POINTER(s), p, s, p, p)
value = function("g_key_file_get_value", s, p, s, s, p)
def texts(array):
    i = 0
    while array and array[i] is not None:
        yield array[i]
        i += 1
def read(text):
    file, data = new(), text.encode()
    if not load(file, data, len(data), 0, None):
        return None
    return {g.decode(): {k.decode(): value(file, g, k, None).decode() for k in texts(keys(file, g, None, None))} for g in texts(groups(file, None))}
json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
`;
