import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestProxy, startProxy } from "../../testkit/harness.js";
import { exchange, type RawResponse } from "../../testkit/peers.js";
import { publicFolder } from "../../testkit/publicFolder.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * What a local user who owns the served directory can have the proxy send to clients: nothing that this user could not
 * read. The proxy runs as root, to whom the system refuses nothing: only the proxy's own rule keeps the secrets.
 */

const APP = 42_424;
const SYMLINKS = ["inside", "never", "anywhere"] as const;
type Symlinks = (typeof SYMLINKS)[number];

/** Of the path `/top/media/sub/FILE`: the directory of the route is `media`. */
const COMPONENTS = ["top", "media", "sub", "file"] as const;
type Component = (typeof COMPONENTS)[number];

/** One that the cache keeps, with and without encoded copies, and one that it does not. */
const FILES = ["small.txt", "encoded.js", "large.bin"] as const;
const LARGE = 600_000;
const SECRET = randomBytes(24).toString("hex");
const SECRET_GZ = `${SECRET}-gz`;
const HARMLESS = "harmless";

/** Where the secrets are, with the modes of the directory and of its files. */
const PLACES = {
  credentials: { variable: "CREDENTIALS_DIRECTORY", directory: 0o755, file: 0o644 },
  renewed: { variable: "PORTICO_CREDENTIALS", directory: 0o755, file: 0o644 },
  state: { variable: "STATE_DIRECTORY", directory: 0o755, file: 0o644 },
  runtime: { variable: "RUNTIME_DIRECTORY", directory: 0o755, file: 0o644 },
  logs: { variable: "LOGS_DIRECTORY", directory: 0o755, file: 0o644 },
  private: { directory: 0o700, file: 0o644 },
  ofGroup: { directory: 0o750, file: 0o644 },
  keys: { directory: 0o755, file: 0o600 },
  keysOfGroup: { directory: 0o755, file: 0o640 },
} as const;
type Place = keyof typeof PLACES;
const PLACE_NAMES = Object.keys(PLACES) as Place[];

let base: string;
let proxy: TestProxy;
const before = { ...process.env };
const mounted: string[] = [];

const at = (...names: string[]): string => join(base, ...names);

beforeAll(async () => {
  base = publicFolder("portico-secrets-");
  for (const [place, settings] of Object.entries(PLACES)) {
    // The rest of the path is there below each component that may be replaced.
    for (const below of ["media/sub", "sub", "."]) fill(at(place, below), SECRET, settings.file);
    fs.chmodSync(at(place), settings.directory);
    if ("variable" in settings) process.env[settings.variable] = at(place);
  }
  for (const below of ["media/sub", "sub", "."]) fill(at("open", below), "open", 0o644);
  proxy = await startProxy({
    routes: SYMLINKS.map((symlinks) => ({
      name: symlinks,
      path: `/${symlinks}`,
      action: {
        type: "staticFiles" as const,
        directory: at(symlinks, "top/media"),
        symlinks,
        index: ["small.txt"],
        precompressed: ["gzip" as const],
      },
    })),
  });
});
afterAll(async () => {
  process.env = before;
  await proxy?.close();
  fs.rmSync(base, { recursive: true, force: true });
});
beforeEach(() => {
  for (const symlinks of SYMLINKS) {
    fill(at(symlinks, "top/media/sub"), HARMLESS, 0o644);
    execFileSync("chown", ["-R", `${APP}:${APP}`, at(symlinks)]);
  }
});
afterEach(async () => {
  // The proxy may close a refused file only after its response.
  for (const path of mounted.splice(0))
    await eventually(() => spawnSync("umount", [path]).status === 0, `to unmount ${path}`);
  for (const symlinks of SYMLINKS) fs.rmSync(at(symlinks), { recursive: true, force: true });
});

/** A directory with all files, of one word. */
function fill(directory: string, text: string, mode: number): void {
  fs.mkdirSync(directory, { recursive: true });
  for (const name of FILES)
    write(join(directory, name), name === "large.bin" ? text.padEnd(LARGE) : text, mode);
  write(join(directory, "encoded.js.gz"), `${text}-gz`, mode);
}

function write(path: string, text: string, mode: number): void {
  fs.writeFileSync(path, text);
  fs.chmodSync(path, mode);
}

function pathOf(symlinks: Symlinks, component: Component, file: string = FILES[0]): string {
  const names = ["top", "media", "sub", file];
  return at(symlinks, ...names.slice(0, COMPONENTS.indexOf(component) + 1));
}

/** What the application's user does to a path: the old one is moved away, and another is put in its place. */
function replace(path: string, put: (path: string) => void, owner = APP): void {
  fs.renameSync(path, `${path}-old`);
  put(path);
  fs.lchownSync(path, owner, owner);
}

const HEADERS = ["Range: bytes=0-99", "Accept-Encoding: gzip", "X: plain"];

function ask(target: string, header = HEADERS[2]!): Promise<RawResponse> {
  return exchange(proxy.port, `GET ${target} HTTP/1.1\r\nHost: a\r\n${header}\r\nConnection: close\r\n\r\n`);
}

/** The statuses of all requests for a file below the route, in which no secret is. */
async function statusesOf(target: string): Promise<Set<number>> {
  const statuses = new Set<number>();
  for (const header of HEADERS) {
    const { status, body, head } = await ask(target, header);
    expect({ target, header, leaks: body.includes(SECRET) || head.includes(SECRET) }).toEqual({
      target,
      header,
      leaks: false,
    });
    statuses.add(status);
  }
  return statuses;
}

async function warm(symlinks: Symlinks): Promise<void> {
  for (const file of FILES) expect([...(await statusesOf(`/${symlinks}/sub/${file}`))]).toContain(200);
}

describe.each(SYMLINKS)("symlinks %s", (symlinks) => {
  describe.each(COMPONENTS)("in place of %s", (component) => {
    test.each(PLACE_NAMES)("a link to %s", async (place) => {
      for (const owner of [APP, 0]) {
        await warm(symlinks);
        for (const file of component === "file" ? [...FILES, "encoded.js.gz"] : FILES.slice(0, 1))
          replace(
            pathOf(symlinks, component, file),
            (path) => fs.symlinkSync(component === "file" ? at(place, file) : at(place), path),
            owner,
          );
        if (owner === 0) for (const one of COMPONENTS.slice(0, 3)) rootOwns(pathOf(symlinks, one));
        for (const file of FILES) expect([...(await statusesOf(`/${symlinks}/sub/${file}`))]).toEqual([403]);
        expect([...(await statusesOf(`/${symlinks}/sub/`))]).toEqual([403]);
        for (const one of [pathOf(symlinks, "top"), `${pathOf(symlinks, "top")}-old`])
          fs.rmSync(one, { recursive: true, force: true });
        fill(at(symlinks, "top/media/sub"), HARMLESS, 0o644);
      }
    });

    test("a link to what everyone may read", async () => {
      const link = (owner: number): void =>
        replace(
          pathOf(symlinks, component),
          (path) => fs.symlinkSync(component === "file" ? at("open", FILES[0]) : at("open"), path),
          owner,
        );
      link(APP);
      const target = `/${symlinks}/sub/${FILES[0]}`;
      expect((await ask(target)).status).toBe(symlinks === "anywhere" ? 200 : 403);
      // Only where nobody else could have moved root's own link there is it followed.
      fs.unlinkSync(pathOf(symlinks, component));
      fs.symlinkSync(component === "file" ? at("open", FILES[0]) : at("open"), pathOf(symlinks, component));
      const isAbove = component === "top" || component === "media";
      const inAppsDirectory = symlinks === "anywhere" ? 200 : 403;
      expect((await ask(target)).status).toBe(inAppsDirectory);
      for (let path = dirname(pathOf(symlinks, component)); path !== base; path = dirname(path))
        rootOwns(path);
      expect((await ask(target)).status).toBe(symlinks === "anywhere" || isAbove ? 200 : 403);
    });

    test.each(["credentials", "state"] as const)("a mount of %s", async (place) => {
      await warm(symlinks);
      const path = pathOf(symlinks, component);
      execFileSync("mount", ["--bind", component === "file" ? at(place, FILES[0]) : at(place), path]);
      mounted.push(path);
      // A single file has no more than its own mode.
      if (component === "file") return;
      expect([...(await statusesOf(`/${symlinks}/sub/${FILES[0]}`))]).toEqual([403]);
    });

    test("a directory that is closed to others after its files were sent", async () => {
      if (component === "file") return;
      const path = pathOf(symlinks, component);
      // The config names the directory below, so nobody else chose the way there.
      const isAbove = component === "top";
      for (const mode of [0o711, 0o750]) {
        await warm(symlinks);
        fs.chmodSync(path, mode);
        // A cached file's path is checked each second.
        await sleep(1_100);
        for (const file of FILES)
          expect((await ask(`/${symlinks}/sub/${file}`)).status).toBe(mode === 0o711 || isAbove ? 200 : 403);
      }
      if (isAbove) return;
      expect(await proxy.errorLog()).toContain(
        `directory "${path}" (mode 0750) lacks execute permission for others; fix it with: chmod o+rx '${path}'`,
      );
    });
  });

  test.each([0o755, 0o751, 0o711, 0o705, 0o701, 0o750, 0o700, 0o704, 0o770, 0o776])(
    "directories of mode %o",
    async (mode) => {
      const expected = (mode & 1) === 1 ? 200 : 403;
      for (const component of ["above", "sub"] as const) {
        const name = `${component}-${mode}`;
        const directory = component === "sub" ? `top/media/${name}` : `top/media/${name}/below`;
        fill(at(symlinks, directory), expected === 200 ? HARMLESS : SECRET, 0o644);
        fs.chmodSync(at(symlinks, "top/media", name), mode);
        const below = component === "sub" ? name : `${name}/below`;
        for (const file of FILES)
          for (const status of await statusesOf(`/${symlinks}/${below}/${file}`))
            expect(expected === 200 ? [200, 206] : [403]).toContain(status);
      }
    },
  );

  test.each([0o644, 0o444, 0o604, 0o004, 0o640, 0o600, 0o400, 0o660, 0o751])(
    "files of mode %o",
    async (mode) => {
      await warm(symlinks);
      for (const file of [...FILES, "encoded.js.gz"]) {
        write(pathOf(symlinks, "file", file), (mode & 4) === 4 ? HARMLESS : SECRET, mode);
      }
      const expected = (mode & 4) === 4 ? [200, 206] : [403];
      for (const file of FILES)
        for (const status of await statusesOf(`/${symlinks}/sub/${file}`)) expect(expected).toContain(status);
      if (expected.includes(200)) return;
      expect(await proxy.errorLog()).toContain(`lacks read permission for others; fix it with: chmod o+r`);
    },
  );

  test("an encoded copy that others may not read is as if there was none", async () => {
    write(pathOf(symlinks, "file", "encoded.js.gz"), SECRET_GZ, 0o640);
    expect([...(await statusesOf(`/${symlinks}/sub/encoded.js`))]).toEqual([206, 200]);
  });

  test.each(["keys", "keysOfGroup"] as const)("hard links to files of %s", async (place) => {
    await warm(symlinks);
    for (const file of [...FILES, "encoded.js.gz"]) {
      fs.unlinkSync(pathOf(symlinks, "file", file));
      fs.linkSync(at(place, file), pathOf(symlinks, "file", file));
    }
    for (const file of FILES) expect([...(await statusesOf(`/${symlinks}/sub/${file}`))]).toEqual([403]);
    expect(await proxy.errorLog()).toMatch(
      /small\.txt" \(mode 06[04]0\) lacks read .*; a link leads there: remove/,
    );
    for (const file of [...FILES, "encoded.js.gz"]) fs.unlinkSync(pathOf(symlinks, "file", file));
  });

  test("a FIFO, a device and a socket", async () => {
    const path = pathOf(symlinks, "file");
    for (const command of [
      ["mkfifo", "-m", "644", path],
      ["mknod", "-m", "644", path, "c", "1", "5"],
      ["python3", "-c", `import socket; socket.socket(socket.AF_UNIX).bind(${JSON.stringify(path)})`],
    ]) {
      fs.unlinkSync(path);
      execFileSync(command[0]!, command.slice(1));
      expect([...(await statusesOf(`/${symlinks}/sub/${FILES[0]}`))]).toEqual([404]);
    }
  });

  test.each([
    ["/proc/self", ["environ", "status", "cmdline", "maps", "cwd/package.json"]],
    ["/proc/self/root", ["proc/version"]],
    ["/proc/thread-self", ["environ"]],
    ["/sys", ["kernel/mm/transparent_hugepage/enabled"]],
    ["/dev", ["zero", "null", "stdin"]],
  ])("%s", async (target, names) => {
    for (const component of ["media", "sub"] as const) {
      const path = pathOf(symlinks, component);
      fs.rmSync(path, { recursive: true, force: true });
      fs.symlinkSync(target, path);
      fs.lchownSync(path, APP, APP);
      for (const name of names) {
        const { status } = await ask(`/${symlinks}/${component === "sub" ? "sub/" : ""}${name}`);
        // Through a link of the kernel's to a file that everyone may read, `anywhere` leads to that file.
        const isPublic = symlinks === "anywhere" && name === "cwd/package.json";
        if (!isPublic) expect([name, [403, 404].includes(status)]).toEqual([name, true]);
      }
      fs.unlinkSync(path);
      fill(at(symlinks, "top/media/sub"), HARMLESS, 0o644);
    }
  });

  test("a secret by way of the root or an open file of the proxy", async () => {
    process.env["PORTICO_TEST_SECRET"] = SECRET;
    const fd = fs.openSync(at("keys", FILES[0]), "r");
    try {
      for (const target of [
        `/proc/self/root${at("credentials", FILES[0])}`,
        `/proc/${process.pid}/fd/${fd}`,
        "/proc/self/environ",
      ]) {
        fs.rmSync(pathOf(symlinks, "file"));
        fs.symlinkSync(target, pathOf(symlinks, "file"));
        expect([...(await statusesOf(`/${symlinks}/sub/${FILES[0]}`))]).toEqual([403]);
      }
    } finally {
      fs.closeSync(fd);
    }
  });

  test.each(["media", "sub", "file"] as const)("%s is exchanged all the time", async (component) => {
    const path = pathOf(symlinks, component);
    fs.renameSync(path, `${path}-real`);
    let turn = 0;
    const exchangeIt = (): void => {
      const target = component === "file" ? at("credentials", FILES[0]) : at("credentials");
      const choices = [`${path}-real`, target, component === "file" ? at("keys", FILES[0]) : at("private")];
      fs.symlinkSync(choices[turn++ % choices.length]!, `${path}-next`);
      fs.lchownSync(`${path}-next`, APP, APP);
      fs.renameSync(`${path}-next`, path);
    };
    exchangeIt();
    const storm = setInterval(exchangeIt, 0);
    try {
      for (let n = 0; n < 60; n++) for (const file of FILES) await statusesOf(`/${symlinks}/sub/${file}`);
    } finally {
      clearInterval(storm);
    }
  });
});

function rootOwns(path: string): void {
  if (fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) fs.chownSync(path, 0, 0);
}
