import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { build } from "esbuild";
import { sharedFile } from "./sharedFile.js";

/** Prints ports that it could use, and lives on, as a process of tests does, until its input ends. */
const program = (ports: string): string => `
  const { freePorts } = require(${JSON.stringify(ports)});
  void freePorts(150).then((ports) => console.log(ports.join(" ")));
  process.stdin.resume();
`;

test("processes that ask at the same moment never get the same port", async () => {
  const module = await sharedFile("ports.cjs", (outfile) =>
    build({ entryPoints: [join(__dirname, "ports.ts")], platform: "node", format: "cjs", outfile }),
  );
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ["--eval", program(module)], { stdio: ["pipe", "pipe", "inherit"] }),
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
