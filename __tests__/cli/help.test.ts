import { run } from "../../src/cli/program.js";
import { nodeFixes } from "../../src/model/host/nodeReleases.js";
import { VERSION } from "../../src/model/text/version.js";
import { expectGolden } from "../render/golden.js";

/** What each command is called, which options it takes, and what it says of them. */

async function portico(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await run(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

/** What a help says of arguments, options and commands, by the name of the section. */
const entriesOf = (help: string, sections = "Arguments|Options.*|Commands") =>
  [...help.matchAll(new RegExp(`^(?:${sections}):\\n((?: .*\\n)+)`, "gm"))].flatMap(([, lines]) =>
    [...lines!.matchAll(/^ {2}(\S.*?(?= {2}|$))((?:.*\n {6,})*.*)$/gm)].map(([, term, text]) => ({
      term: term!,
      text: text!.replaceAll(/\s+/g, " ").trim(),
    })),
  );

/** Widest line of a help. */
const COLUMNS_MAX = 120;

interface Help {
  readonly command: string;
  readonly out: string;
}

/** The help of a command, and those of the commands below it. */
async function helpsOf(command: string): Promise<readonly Help[]> {
  const words = command.split(" ").filter((word) => word !== "");
  const { code, out, err } = await portico(...words, "--help");
  expect({ command, code, err }).toEqual({ command, code: 0, err: "" });
  const below = entriesOf(out, "Commands")
    .map(({ term }) => term.split(" ")[0]!)
    .filter((name) => name !== "help");
  const helps = [{ command, out }];
  for (const name of below) helps.push(...(await helpsOf([...words, name].join(" "))));
  return helps;
}

test("of every command", async () => {
  const lines = [];
  const noJson = [];
  for (const { command, out } of [...(await helpsOf("")), ...(await helpsOf("certificates share"))]) {
    expect(out).not.toMatch(/default:\s+(?:\{\}|\[\]|""|undefined|null|\d{6})/);
    if (!out.includes("--json")) noJson.push(command);
    // Usage and tables are wrapped to the terminal; the text around them is as it is written.
    expect([command, out.split("\n").filter((line) => line.length > COLUMNS_MAX)]).toEqual([command, []]);
    // What else a help says is its source.
    expect([command, /^Usage: .*\n\n(.*)/.exec(out)![1]]).toEqual([command, expect.stringMatching(/^\w/)]);
    const entries = entriesOf(out);
    expect(entries.filter(({ text }) => text === "")).toEqual([]);
    const terms = entries
      .filter(({ term }) => !term.startsWith("-h, "))
      .map(({ term, text }) => `  ${term}${/ \(default:.*\)/.exec(` ${text}`)?.[0] ?? ""}`);
    lines.push(/^Usage: (.*)$/m.exec(out)![1], ...terms);
  }
  expectGolden("help.txt", `${lines.join("\n")}\n`);
  // They print no result, or run until they are stopped.
  expect(noJson).toEqual([
    "",
    "serve",
    "maintenance",
    "quiesce",
    "password",
    "settings",
    "completion",
    "certificates share",
  ]);
});

test.each([["-h"], ["help"]])("%s is --help", async (...args) => {
  expect(await portico(...args)).toEqual(await portico("--help"));
});

test.each([["-V"], ["--version"], ["version"]])("%s", async (...args) => {
  const { node, openssl } = process.versions;
  const out = `portico ${VERSION} (Node.js ${node}: ${nodeFixes(node, Date.now())?.text}, OpenSSL ${openssl})\n`;
  expect(await portico(...args)).toEqual({ code: 0, out, err: "" });
});

test("nothing that was given acts on a terminal when it is printed", async () => {
  const escape = (text: string): string => `${text}\u001b[2J`;
  const { code, err } = await portico(escape("serv"));
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringContaining("unknown command 'serv\\u001b[2J'"),
  });
  const missing = await portico("check", "--json", `/none/${escape("portico.json")}`);
  expect(`${missing.out}${missing.err}`).toContain("/none/portico.json\\u001b[2J");
  expect(`${missing.out}${missing.err}`).not.toContain("\u001b");
});

/** Numbers that an option takes: the least and the greatest. */
const RANGES: readonly [command: string, option: string, least: number, greatest: number][] = [
  ["reload", "--timeout", 1, 3_600],
  ["upgrade", "--timeout", 1, 3_600],
  ["certificates", "--timeout", 1, 3_600],
  ["certificates renew", "--timeout", 1, 3_600],
  ["check --live", "--timeout", 1, 3_600],
  ["check --live", "--port-offset", 0, 65_535],
  ["doctor --elsewhere", "--timeout", 1, 3_600],
  ["preview", "--port-offset", 1, 65_534],
  ["activate", "--wait", 0, 99_999],
  ["deactivate", "--wait", 0, 99_999],
  ["recover", "--wait", 0, 99_999],
  ["certificates share --own 192.0.2.1 --peer 192.0.2.2 --key k --state s", "--port", 1, 65_535],
];

test.each(RANGES)("%s %s", async (command, option, least, greatest) => {
  const given = (value: number): Promise<{ code: number; err: string }> =>
    portico(...command.split(" "), option, String(value), "--none");
  for (const value of [least - 1, greatest + 1])
    expect((await given(value)).err).toContain(
      value < 0
        ? `option '${option} `
        : `argument '${value}' is invalid. Give a whole number from ${least} to ${greatest}.`,
    );
  // The number is read; what stops the command is the option that there is not.
  for (const value of [least, greatest])
    expect(await given(value)).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/unknown option '--none'/),
    });
});

test.each([
  ["reload --credential a", "Give NAME:FILE, such as privkey.pem:/etc/portico/tls/privkey.pem."],
  ["reload --credential :a", "Give NAME:FILE"],
  ["reload --credential a:", "Give NAME:FILE"],
  ["reload --credential a:b --pid 1", "option '--credential' needs --credential-directory and --pid"],
  ["reload --credential a:b --credential-directory d", "option '--credential' needs --credential-directory"],
  ["doctor --public-address files.example.org", "give an IP address"],
  [
    "doctor --public-address 127.0.0.1",
    "only the host itself can reach a loopback address: give the public address",
  ],
  ["doctor --public-address ::1", "only the host itself can reach a loopback address"],
  ["doctor --deployment /none/deployment.json", "error: --deployment: there is no /none/deployment.json\n"],
  ["check --connect 192.0.2.1", "error: option '--connect' needs --live"],
  ["check --host a", "error: option '--host' needs --live"],
  ["check --image-path a", "error: option '--image-path' needs --live"],
  ["check --port-offset 1", "error: option '--port-offset' needs --live"],
  ["check --insecure", "error: option '--[no-]insecure' needs --live"],
  ["check --timeout 1", "error: option '--timeout' needs --live"],
  ["check --database a@b/c", "error: option '--database' needs --live"],
  ["check --database-option-file a", "error: option '--database-option-file' needs --live"],
  ["certificates share", "error: required option '--own <ADDRESS>' not specified"],
  ["certificates share --own a", "error: required option '--peer <ADDRESS>' not specified"],
  ["certificates share --own a --peer b", "error: required option '--port <PORT>' not specified"],
  ["certificates share --own a --peer b --port 1", "error: required option '--key <FILE>' not specified"],
  [
    "certificates share --own a --peer b --port 1 --key k",
    "there is no directory for certificates: give --state DIR\n",
  ],
])("%s is wrong usage", async (args, message) => {
  const { code, out, err } = await portico(...args.split(" "));
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(message);
});
