import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Every command of the pages on deploying is run by a test. A new one needs a line here, and its test. */

const PAGES = ["deploying", "pair", "certificates", "host-gone"];

/** A command by its page and the beginning of its block: the suite that runs it, and what of it stands there. */
const RUN_BY: readonly (readonly [command: string, suite: string, there: string])[] = [
  ["deploying: mkdir front-end", "proof/package/newProject.ts", 'line.startsWith("npm install")'],
  ["deploying: export HOST_KEY=", "proof/hosts/guide.test.ts", 'const [, trust] = blocks("1. ", "sh")'],
  ["deploying: npx tsx main.ts", "proof/hosts/guide.test.ts", 'const [first, look] = blocks("2. ", "sh")'],
  ["deploying: curl -kI", "proof/hosts/guide.test.ts", "follow(look!)"],
  ["deploying: npx tsx main.ts", "proof/hosts/guide.test.ts", 'const [deploy] = blocks("3. ", "sh")'],
  ["deploying: npx tsx main.ts", "proof/hosts/guide.test.ts", 'const [again, replace] = blocks("4. ", "sh")'],
  [
    "deploying: terraform -chdir=cdktf.out/stacks/portico state mv",
    "proof/hosts/deploy.test.ts",
    "moveIdentity()",
  ],
  [
    "deploying: terraform -chdir=cdktf.out/stacks/portico apply -replace",
    "proof/hosts/guide.test.ts",
    "follow(replace!",
  ],
  [
    "deploying: install -d -m 0700",
    "proof/hosts/deploy.test.ts",
    "install -d -m 0700 -o deploy /opt/admin-scripts",
  ],
  [
    "deploying: terraform -chdir=cdktf.out/stacks/portico destroy",
    "proof/hosts/guide.test.ts",
    'blocks("6. ", "sh")',
  ],
  [
    "deploying: /var/lib/portico/deployment/command doctor",
    "proof/hosts/guide.test.ts",
    'blocks("7. ", "sh")',
  ],
  [
    "deploying: /var/lib/portico/deployment/command activate --again",
    "proof/hosts/guide.test.ts",
    "host.must(drift!)",
  ],
  ["deploying: chmod 600 terraform.*", "proof/package/package.test.ts", '"Where secrets are"'],
  ["pair: for host in", "proof/hosts/pair.test.ts", "-replace=${exchange}"],
  ["pair: ip -4 address show", "proof/hosts/pairHosts.ts", "address show to"],
  [
    "certificates: /var/lib/portico/deployment/command certificates renew",
    "proof/hosts/certificates.test.ts",
    "certificates renew",
  ],
  ["certificates: (umask 077; openssl rand", "proof/processes/ticketKeys.test.ts", "umask 077; openssl rand"],
  ["host-gone: npx tsx main.ts", "proof/hosts/deploy.test.ts", "applyAgain()"],
  ["host-gone: npx tsx main.ts", "proof/hosts/web.test.ts", 'whenDestroyed: "keep"'],
];

const read = (path: string): string => readFileSync(join(__dirname, "..", path), "utf8");

test("every command of the pages is named here once, in their order", () => {
  const commands = PAGES.flatMap((page) =>
    [...read(`docs/${page}.md`).matchAll(/^```(?:sh|text)\n(.*)/gm)].map(([, line]) => `${page}: ${line}`),
  );
  const named = commands.map((command, i) =>
    command.startsWith(RUN_BY[i]?.[0] ?? "-") ? RUN_BY[i]![0] : command,
  );
  expect(named).toEqual(RUN_BY.map(([command]) => command));
});

test.each(RUN_BY)("%s is run by %s", (_command, suite, there) => {
  expect(read(suite)).toContain(there);
});
