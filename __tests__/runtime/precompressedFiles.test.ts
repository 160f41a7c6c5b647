import fs from "node:fs";
import { request as http } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { CONTENT_BYTES_MAX } from "../../src/runtime/actions/fileCache.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/** Encoded files beside a file, by what a client accepts (decisions 6.8). */

const SETTLED_MS = 130;
const SUFFIXES = { zstd: ".zst", br: ".br", gzip: ".gz" } as const;

let base: string;
let front: EveryProtocol;

/**
 * The content of each file is its name; a large one is larger than what the cache keeps. A file of an older second keeps
 * its entity tag.
 */
function write(...names: string[]): void {
  for (const name of names) {
    const file = join(base, "www", name);
    fs.writeFileSync(file, name.padEnd(name.startsWith("large") ? CONTENT_BYTES_MAX + 1 : 0));
    fs.utimesSync(file, 1e9, 1e9);
  }
}

beforeAll(async () => {
  base = publicFolder("portico-encoded-");
  const directory = join(base, "www");
  fs.mkdirSync(join(directory, "directory.js.br"), { recursive: true });
  for (const suffix of ["", ...Object.values(SUFFIXES)]) write(`a.js${suffix}`, `large.js${suffix}`);
  write("plain.js", "directory.js", "index.html", "index.html.gz", "gone.js.br", "a.js.gz.gz");
  for (const name of ["out", "in", "loop", "denied", "same"]) write(`${name}.js`);
  fs.writeFileSync(join(base, "secret"), "secret");
  fs.symlinkSync("../secret", join(directory, "out.js.br"));
  fs.symlinkSync("a.js.br", join(directory, "in.js.br"));
  fs.symlinkSync("loop.js.br", join(directory, "loop.js.br"));
  fs.linkSync(join(directory, "same.js"), join(directory, "same.js.br"));
  await sleep(SETTLED_MS);
  const action = { type: "staticFiles", directory, index: ["index.html"] } as const;
  front = await startEveryProtocol({
    routes: [
      { name: "plain", path: "/plain", action },
      { name: "never", path: "/never", action: { ...action, symlinks: "never", precompressed: ["br"] } },
      {
        name: "encoded",
        path: "/",
        action: { ...action, cacheControl: "no-cache", precompressed: ["zstd", "br", "gzip"] },
      },
    ],
  });
});
afterAll(async () => {
  await front.close();
  fs.rmSync(base, { recursive: true });
});

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}
type Ask = (path: string, fields?: Record<string, string | string[]>, method?: string) => Promise<Seen>;

const overHttp1: Ask = (path, headers = {}, method = "GET") =>
  new Promise((resolve, reject) => {
    const sent = http({ port: front.plainPort, path, method, headers, agent: false }, (response) => {
      let body = "";
      response.setEncoding("latin1").on("data", (piece: string) => (body += piece));
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body }));
    });
    sent.on("error", reject).end();
  });

const overHttp2: Ask = async (path, fields = {}, method = "GET") => {
  const session = connectHttp2(front.securePort);
  const seen = await ask(session, { ":method": method, ":path": path, ...fields });
  session.destroy();
  return seen;
};

const accept = (value: string | string[]) => ({ "accept-encoding": value });
/** What the response is of: the file's name is its content. */
const summary = ({ status, headers, body }: Seen) =>
  `${status} ${String(headers["content-encoding"] ?? "-")} ${String(headers["vary"] ?? "-")} ${body.trimEnd()}`;

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
] as const)("over %s", (_, get) => {
  test.each<[accepted: string | string[], coding: keyof typeof SUFFIXES | "-"]>([
    ["gzip, deflate, br, zstd", "zstd"],
    ["gzip, deflate, br", "br"],
    ["GZIP", "gzip"],
    ["x-gzip", "gzip"],
    [["gzip;q=0.5", "br;q=0.4"], "gzip"],
    ["gzip;q=1.000 , br ; Q=0.9,,", "gzip"],
    ["*", "zstd"],
    ["*;q=0.5, zstd;q=0", "br"],
    ["identity;q=0, gzip;q=0.001", "gzip"],
    ["identity, gzip;q=0.5", "-"],
    ["identity;q=0.5, gzip;q=0.5", "gzip"],
    ["*;q=0", "-"],
    ["deflate", "-"],
    ["", "-"],
    ["br;q=2", "-"],
    ["br;q=1.001", "-"],
    ["br;q=0.0001", "-"],
    ["br;level=1", "-"],
    ["br;q=1;x=1", "-"],
    ["gzip br", "-"],
    ["br, ;q=1", "-"],
  ])("Accept-Encoding: %j selects %s", async (accepted, coding) => {
    const body = `a.js${coding === "-" ? "" : SUFFIXES[coding]}`;
    const seen = await get("/a.js", accept(accepted));
    expect(summary(seen)).toBe(`200 ${coding} Accept-Encoding ${body}`);
    expect(seen.headers).toMatchObject({
      "content-type": "text/javascript",
      "content-length": String(body.length),
      "cache-control": "no-cache",
    });
    expect((await get("/a.js", accept(accepted), "HEAD")).headers).toEqual({
      ...seen.headers,
      date: expect.anything(),
    });
  });

  test.each([
    ["no encoded file", "/plain.js", "200 - Accept-Encoding plain.js"],
    ["a directory of that name", "/directory.js", "200 - Accept-Encoding directory.js"],
    ["a link out of the directory", "/out.js", "200 - Accept-Encoding out.js"],
    ["a link in the directory", "/in.js", "200 br Accept-Encoding a.js.br"],
    ["the same, where no link is followed", "/never/in.js", "200 - Accept-Encoding in.js"],
    ["a link to itself", "/loop.js", "200 - Accept-Encoding loop.js"],
    ["an index file", "/", "200 gzip Accept-Encoding index.html.gz"],
    ["the name of an encoded file", "/a.js.br", "200 - Accept-Encoding a.js.br"],
    ["the same with one beside it", "/a.js.gz", "200 gzip Accept-Encoding a.js.gz.gz"],
    ["another route", "/plain/a.js", "200 - - a.js"],
  ])("%s", async (_what, path, expected) => {
    const fields = accept("br, gzip");
    expect([summary(await get(path, fields)), summary(await get(path, fields))]).toEqual([
      expected,
      expected,
    ]);
  });

  test("without the original, there is no response from the encoded file", async () => {
    expect((await get("/gone.js", accept("br"))).status).toBe(404);
  });

  test.each(["a.js", "large.js"])("conditions and ranges are about the selected one: %s", async (name) => {
    const [plain, br] = [await get(`/${name}`), await get(`/${name}`, accept("br"))];
    const etag = br.headers["etag"] as string;
    expect(plain.headers["etag"]).not.toBe(etag);
    const more = { ...accept("br"), "if-none-match": etag };
    expect(summary(await get(`/${name}`, more))).toBe("304 - Accept-Encoding ");
    expect((await get(`/${name}`, { "if-none-match": etag })).status).toBe(200);
    expect((await get(`/${name}`, { "if-match": etag })).status).toBe(412);
    const part = await get(`/${name}`, { ...accept("br"), range: `bytes=${name.length}-${name.length + 2}` });
    expect(summary(part)).toBe("206 br Accept-Encoding .br");
    expect(part.headers["content-range"]).toBe(
      `bytes ${name.length}-${name.length + 2}/${String(br.headers["content-length"])}`,
    );
    const other = { range: "bytes=0-0", "if-range": etag };
    expect((await get(`/${name}`, other)).status).toBe(200);
    expect((await get(`/${name}`, { ...other, ...accept("br") })).status).toBe(206);
    // Parts of encoded content together are no encoded content.
    expect(summary(await get(`/${name}`, { ...accept("br"), range: "bytes=0-0,2-2" }))).toBe(summary(br));
  });

  test("two names of one file have different tags", async () => {
    const tags = [await get("/same.js"), await get("/same.js", accept("br"))].map(
      ({ headers }) => headers["etag"],
    );
    expect(new Set(tags).size).toBe(2);
  });

  test.each(["late.js", "large-late.js"])("one that appears, changes and goes: %s", async (name) => {
    const seen = async (): Promise<string> => summary(await get(`/${name}`, accept("br"))).split(" ")[1]!;
    const encoded = join(base, "www", `${name}.br`);
    write(name);
    await sleep(SETTLED_MS);
    expect([await seen(), await seen()]).toEqual(["-", "-"]);
    write(`${name}.br`);
    expect(await seen()).toBe("br");
    await sleep(SETTLED_MS);
    expect([await seen(), await seen()]).toEqual(["br", "br"]);
    fs.writeFileSync(encoded, "changed");
    expect((await get(`/${name}`, accept("br"))).body).toBe("changed");
    fs.rmSync(encoded);
    expect([await seen(), await seen()]).toEqual(["-", "-"]);
  });
});

test("one that may not be read is as if it were not there, and the error log says why", async () => {
  write("denied.js.br");
  fs.chmodSync(join(base, "www/denied.js.br"), 0);
  const isRoot = process.geteuid!() === 0;
  if (isRoot) process.seteuid!(65_534);
  try {
    expect(summary(await overHttp1("/denied.js", accept("br")))).toBe("200 - Accept-Encoding denied.js");
  } finally {
    if (isRoot) process.seteuid!(0);
  }
  expect(await front.errorLog()).toMatch(/denied\.js\.br" failed \(13: .* lacks read permission for others/);
});
