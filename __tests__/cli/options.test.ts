import { Command, InvalidArgumentError } from "commander";
import { withControl } from "../../src/cli/commands/controlOptions.js";
import { duration, moment, wholeNumber } from "../../src/cli/options.js";
import { sourceOf } from "../../src/cli/document.js";
import { collectUpstream } from "../../src/cli/commands/previewOptions.js";
import { collectCredential } from "../../src/cli/commands/reloadCommand.js";
import { addDatabaseOptions } from "../../src/cli/commands/storedSettingsOptions.js";
import type { CredentialSource } from "../../src/runtime/load/credentialSet.js";

/** How options are read. */

const parsed = (command: Command, ...args: string[]): Record<string, unknown> =>
  command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .parse(args, { from: "user" })
    .opts();

test.each([
  ["0", 0],
  ["007", 7],
  ["10", 10],
])("%j is the number %i", (text, value) => expect(wholeNumber(0, 10)(text)).toBe(value));

test.each(["", " 1", "1 ", "1e0", "+1", "-1", "1.0", "x1", "11"])(
  "%j is not a number from 0 to 10",
  (text) => {
    expect(() => wholeNumber(0, 10)(text)).toThrow(InvalidArgumentError);
    expect(() => wholeNumber(1, 10)("0")).toThrow("Give a whole number from 1 to 10.");
  },
);

test.each([
  ["sync@127.0.0.1:3307/sync_web", { user: "sync", host: "127.0.0.1", port: 3307, name: "sync_web" }],
  ["sync@db.example/sync", { user: "sync", host: "db.example", port: 3306, name: "sync" }],
  ["sync@[::1]/sync", { user: "sync", host: "::1", port: 3306, name: "sync" }],
  ["sync@[2001:db8::1]:3307/sync", { user: "sync", host: "2001:db8::1", port: 3307, name: "sync" }],
])("the database %s", (text, database) => {
  expect(parsed(addDatabaseOptions(new Command()), "--database", text)).toEqual({ database });
});

test.each([
  ...["sync", "@h/n", "u@/n", "u@h/", "u@h:/n", "u@h:x/n", "u@h:123456/n", "u@[]/n", "u@h/n/m", "u@h"],
  ...[" u@h/n", "u@h/n ", "u u@h/n", "u@h h/n", "u@h/n n", "u@::1/n", "a@u@h/n"],
])("%j is not a database", (text) => {
  expect(() => parsed(addDatabaseOptions(new Command()), "--database", text)).toThrow(
    /Give USER@HOST:PORT\/NAME/,
  );
});

test("a running portico is asked at its default socket, and has 85 seconds", () => {
  expect(parsed(withControl(new Command()))).toEqual({ control: "/run/portico/control.sock", timeout: 85 });
  expect(parsed(withControl(new Command()), "--control", "/a", "--timeout", "3600")).toEqual({
    control: "/a",
    timeout: 3600,
  });
  expect(() => parsed(withControl(new Command()), "--timeout", "3601")).toThrow(/from 1 to 3600/);
});

test.each([
  [undefined, undefined, { file: "/etc/portico/portico.json" }],
  [undefined, "/srv", { file: "/srv/etc/portico/portico.json", root: "/srv" }],
  ["a.json", undefined, { file: "a.json" }],
  ["a.json", "/srv/../x", { file: "a.json", root: "/x" }],
])("the config of %j below %j", (file, root, source) => {
  expect(sourceOf(file, root)).toEqual(source);
});

test("files are handed over by name, in the order that they are given", () => {
  const given = ["a:/b:c", "a:d"].reduce<CredentialSource[]>(
    (before, text) => collectCredential(text, before),
    [],
  );
  expect(given).toEqual([
    { name: "a", file: "/b:c" },
    { name: "a", file: "d" },
  ]);
});

test("upstreams of a preview are given by name, the last of a name counts", () => {
  const given = ["a=b", "web=http://127.0.0.1:1?x=y", "a=c"].reduce(
    (before, text) => collectUpstream(text, before),
    {},
  );
  expect(given).toEqual({ a: "c", web: "http://127.0.0.1:1?x=y" });
  for (const text of ["", "web", "=", "=b", "web="])
    expect(() => collectUpstream(text, {})).toThrow("Give NAME=URL, such as web=http://127.0.0.1:18000.");
});

test.each([
  ["1s", 1_000],
  ["90m", 5_400_000],
  ["24h", 86_400_000],
])("%s is a length of time", (text, ms) => expect(duration(86_400_000)(text)).toBe(ms));

test.each(["", "0s", "25h", "1.5h", "-1m", "10", "1d", "1h30m", " 1h"])(
  "%j is no length of time up to a day",
  (text) => {
    expect(() => duration(86_400_000)(text)).toThrow(InvalidArgumentError);
  },
);

describe("a moment", () => {
  beforeAll(() => jest.useFakeTimers({ now: new Date(2026, 4, 17, 14, 0, 0) }));
  afterAll(() => jest.useRealTimers());

  test.each([
    ["14:30", new Date(2026, 4, 17, 14, 30)],
    ["13:30", new Date(2026, 4, 18, 13, 30)],
    ["14:00", new Date(2026, 4, 18, 14, 0)],
    ["9:05", new Date(2026, 4, 18, 9, 5)],
    ["30m", new Date(2026, 4, 17, 14, 30)],
    ["2026-05-20T08:00", new Date(2026, 4, 20, 8, 0)],
    ["2026-05-20 08:00:10Z", new Date(Date.UTC(2026, 4, 20, 8, 0, 10))],
  ])("%s", (text, date) => expect(new Date(moment(text))).toEqual(date));

  test.each(["", "24:00", "14:60", "1430", "soon", "2026-05-17T13:00", "2026-13-01T00:00", "2026-05-20"])(
    "%j is none that comes",
    (text) => expect(() => moment(text)).toThrow(InvalidArgumentError),
  );
});
