import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";

/** Prints ports that it could use, and lives on, as a process of tests does, until its input ends. */
const PROGRAM = `
  const { freePorts } = require(${JSON.stringify(join(__dirname, "ports.ts"))});
  void freePorts(150).then((ports) => console.log(ports.join(" ")));
  process.stdin.resume();
`;

test("processes that ask at the same moment never get the same port", async () => {
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ["--require", "tsx/cjs", "--eval", PROGRAM], {
      cwd: ROOT,
      stdio: ["pipe", "pipe", "inherit"],
    }),
  );
  const ports = await Promise.all(
    children.map(async (child) => {
      const ended = once(child, "close").then(() => Promise.reject(new Error("it ended without ports")));
      const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
      return line.toString().trim().split(" ").map(Number);
    }),
  );
  for (const child of children) child.stdin.end();
  await Promise.all(children.map((child) => once(child, "close")));
  // Of 600 random ports out of 20,000 some nine would be given twice.
  expect(new Set(ports.flat()).size).toBe(600);
});
