import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "../../src/host/diagnosis/system/command.js";
import { testWith } from "../../testkit/testWith.js";
import { ipv4Routes, ipv6Routes, lostRoutes } from "../../src/host/diagnosis/defaultRoutes.js";
import type { Evidence } from "../../src/host/diagnosis/evidence.js";
import { type ForeignRule, rulesAbout } from "../../src/host/diagnosis/system/foreignRules.js";
import { legacyRulesAbout } from "../../src/host/diagnosis/system/legacyRules.js";
import { clientAddresses } from "../../src/host/diagnosis/fromOutside.js";
import { diagnose } from "../../src/host/diagnosis/rows/rows.js";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { HEALTHY } from "./site.js";

/** What keeps other machines from a host that responds to itself. */

const RULES = `table inet portico { # handle 1
	chain input { # handle 1
		type filter hook input priority filter; policy drop;
		tcp dport { 443 } drop # handle 2
	}
}
table ip filter { # handle 2
	chain ufw-user-input { # handle 1
		tcp dport 443 reject # handle 4
		tcp dport 8443 drop # handle 5
		tcp dport 400-500 ip saddr 198.51.100.0/24 drop # handle 6
		tcp dport { 80, 443 } accept # handle 7
		ip protocol vrrp drop # handle 8
	}
	chain INPUT { # handle 2
		type filter hook input priority filter; policy drop;
	}
	chain FORWARD { # handle 3
		type filter hook forward priority filter; policy drop;
		tcp dport 443 drop # handle 9
	}
}
`;

test("rules of other tables about the ports, with commands", () => {
  const lines = (vrrp: boolean): string[] =>
    rulesAbout(RULES, [80, 443], vrrp).map(
      ({ chain, text, isOfSome, fix }) =>
        `${chain}: ${text} | ${isOfSome ? "some" : "all"} | ${fix.split(";")[0]}`,
    );
  const found = [
    "ip filter ufw-user-input: tcp dport 443 reject | all | nft delete rule ip filter ufw-user-input handle 4",
    "ip filter ufw-user-input: tcp dport 400-500 ip saddr 198.51.100.0/24 drop | some | nft delete rule ip filter ufw-user-input handle 6",
    "ip filter INPUT: policy drop | all | nft insert rule ip filter INPUT tcp dport { 80, 443 } accept",
  ];
  expect(lines(false)).toEqual(found);
  const vrrp =
    "ip filter ufw-user-input: ip protocol vrrp drop | all | nft delete rule ip filter ufw-user-input handle 8";
  expect(lines(true)).toEqual(found.toSpliced(2, 0, vrrp));
});

const SAVED = `*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p tcp -m tcp --dport 443 -j REDIRECT --to-ports 8443
-A PREROUTING -p tcp -m tcp ! --dport 443 -j DNAT --to-destination 10.0.0.2
-A OUTPUT -p tcp -m tcp --dport 443 -j REDIRECT --to-ports 8443
COMMIT
*filter
:INPUT DROP [1:60]
:FORWARD DROP [0:0]
:ufw-user-input - [0:0]
-A INPUT -p tcp -m multiport --dports 25,400:500 -m comment --comment "it\\'s \`id\` $HOME" -j REJECT --reject-with tcp-reset
-A INPUT -s 198.51.100.7/32 -p tcp -m tcp --dport 80 -j DROP
-A INPUT -p tcp -m tcp --dport 443 -j ACCEPT
-A INPUT -p tcp -m tcp --dport 4430 -j DROP
-A INPUT -p vrrp -j DROP
COMMIT
`;

test("rules of iptables-legacy about the ports, with commands", () => {
  const lines = (vrrp: boolean): string[] =>
    legacyRulesAbout(SAVED, "iptables-legacy", [80, 443], vrrp).map(
      ({ chain, text, isOfSome, fix }) =>
        `${chain}: ${text} | ${isOfSome ? "some" : "all"} | ${fix.split(";")[0]}`,
    );
  const [redirect, reject, ban] = [
    "-p tcp -m tcp --dport 443 -j REDIRECT --to-ports 8443",
    '-p tcp -m multiport --dports 25,400:500 -m comment --comment "it\\\'s `id` $HOME" -j REJECT --reject-with tcp-reset',
    "-s 198.51.100.7/32 -p tcp -m tcp --dport 80 -j DROP",
  ];
  // A shell expands nothing of the comment.
  const asWords =
    "-p tcp -m multiport --dports 25,400:500 -m comment --comment 'it'\\''s `id` $HOME' -j REJECT --reject-with tcp-reset";
  const found = [
    `iptables-legacy nat PREROUTING: ${redirect} | all | iptables-legacy -t nat -D PREROUTING ${redirect}`,
    "iptables-legacy filter INPUT: policy DROP | all | iptables-legacy -I INPUT -p tcp -m multiport --dports 80,443 -j ACCEPT",
    `iptables-legacy filter INPUT: ${reject} | all | iptables-legacy -t filter -D INPUT ${asWords}`,
    `iptables-legacy filter INPUT: ${ban} | some | iptables-legacy -t filter -D INPUT ${ban}`,
  ];
  expect(lines(false)).toEqual(found);
  const vrrp =
    "iptables-legacy filter INPUT: -p vrrp -j DROP | all | iptables-legacy -t filter -D INPUT -p vrrp -j DROP";
  expect(lines(true)).toEqual([...found, vrrp]);
});

testWith("root", "iptables-legacy")(
  "the kernel's rules of iptables-legacy, and those that no program shows",
  () => {
    const code = `import("./src/host/diagnosis/system/legacyRules.ts").then(async (loaded) => {
    const { legacyRules } = loaded.default ?? loaded;
    const seen = [await legacyRules([443], false)];
    process.env.PATH = "/none";
    console.log(JSON.stringify([...seen, await legacyRules([443], false)]));
  });`;
    const inNetwork = (first: string): unknown =>
      JSON.parse(
        execFileSync(
          "unshare",
          [
            "--net",
            "sh",
            "-ec",
            `${first}\nexec "$@"`,
            "sh",
            process.execPath,
            "--import",
            "tsx",
            "-e",
            code,
          ],
          { encoding: "utf8" },
        ),
      );
    const nothing = { rules: [] };
    expect(inNetwork("")).toEqual([nothing, nothing]);
    const rule = "-p tcp -m tcp --dport 443 -j DROP";
    expect(inNetwork(`ip6tables-legacy -A INPUT ${rule}`)).toEqual([
      { rules: [expect.objectContaining({ chain: "ip6tables-legacy filter INPUT", text: rule })] },
      {
        rules: [],
        unseen: expect.stringMatching(
          /^rules that could not be read: the tables filter of ip6tables-legacy \(/,
        ),
      },
    ]);
  },
);

test("a program that is a link to itself gives no answer, as one that does not exist", async () => {
  const loop = join(mkdtempSync(join(tmpdir(), "portico-loop-")), "nft");
  symlinkSync(loop, loop);
  for (const program of [loop, "/none/nft"]) expect(await run([program], 5)).toMatchObject({ code: 127 });
  rmSync(dirname(loop), { recursive: true });
});

test("default routes of the kernel's lists, and those that are lost", () => {
  const ipv4 = ipv4Routes(
    "Iface\tDestination\tGateway\neth0\t00000000\t017100CB\t0003\t0\t0\t0\t00000000\t0\t0\t0\neth0\t007100CB\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
  );
  expect(ipv4).toEqual([{ family: "IPv4", gateway: "203.0.113.1", interface: "eth0" }]);
  const zero = "0".repeat(32);
  const ipv6 = ipv6Routes(
    `${zero} 00 ${zero} 00 20010db8011300000000000000000001 00000400 00000001 00000000 00000003     eth0\n${zero} 00 ${zero} 00 ${zero} ffffffff 00000001 00000000 00200200       lo\n`,
  );
  expect(ipv6).toEqual([{ family: "IPv6", gateway: "2001:db8:113::1", interface: "eth0" }]);
  expect(lostRoutes([...ipv4, ...ipv6], ipv6)).toEqual([
    {
      at: "IPv4 default route",
      what: expect.stringContaining("it led to 203.0.113.1 (eth0)"),
      fix: expect.stringContaining("ip -4 route add default via 203.0.113.1 dev eth0"),
    },
  ]);
});

test("clients use the addresses of the deployment, or one of each family", () => {
  const own = new Set(["127.0.0.1", "::1", "fe80::1", "192.0.2.1", "192.0.2.2", "2001:db8::1"]);
  expect(clientAddresses(own, undefined)).toEqual(["192.0.2.1", "2001:db8::1"]);
  const deployment = { network: { addresses: ["192.0.2.2"] } } as unknown as NonNullable<
    Evidence["deployment"]
  >;
  expect(clientAddresses(own, deployment)).toEqual(["192.0.2.2"]);
});

const blocks: ForeignRule = {
  chain: "ip filter INPUT",
  text: "tcp dport 443 drop",
  isOfSome: false,
  fix: "delete it",
};
const bans: ForeignRule = { ...blocks, text: "ip saddr @f2b tcp dport 443 drop", isOfSome: true };
const closed = { id: "ports", cause: "port 443 cannot be reached", evidence: ["open from here: none"] };
const asked = (...failed: (typeof closed)[]): Partial<Evidence> => ({
  outside: { asked: [{ address: "203.0.113.10", failed }] },
});

test.each<[what: string, seen: Partial<Evidence>, status: string, ...words: RegExp[]]>([
  ["as from inside", asked(), "ok", /203\.0\.113\.10: as from inside/],
  [
    "bans of others",
    { ...asked(), foreignRules: [bans] },
    "ok",
    /rule of another table, ip filter INPUT: ip saddr/,
  ],
  [
    "a rule in the way",
    { ...asked(closed), foreignRules: [blocks] },
    "failed",
    /^rules of another table keep[^]*203\.0\.113\.10: port 443 cannot be reached \(open from here: none\)[^]*\ndelete it$/,
  ],
  [
    "rules of the deployment that were changed",
    {
      ...asked(closed),
      drift: { ...HEALTHY.drift!, firewall: [{ at: "/f", what: "is odd", fix: "mend it" }] },
    },
    "explained",
    /203\.0\.113\.10: port 443 cannot be reached/,
  ],
  ["something else in the way", asked(closed), "failed", /nft list ruleset/],
  ["a rule about some clients", { ...asked(closed), foreignRules: [bans] }, "unknown", /check from a client/],
  ["the router of that network", asked({ ...closed, id: "hairpin" }), "ok"],
  ["no namespace", { outside: { why: "no ip" } }, "not asked", /not asked from outside: no ip/],
  [
    "no namespace, and a rule in the way",
    { outside: { why: "no ip" }, foreignRules: [blocks] },
    "failed",
    /in the way of the front end's ports[^]*not asked from outside: no ip/,
  ],
  [
    "rules that could not be read",
    { outside: { why: "no ip" }, rulesUnseen: "rules that could not be read: the tables filter" },
    "not asked",
    /not asked from outside: no ip; rules that could not be read: the tables filter/,
  ],
  [
    "something in the way, maybe a rule that could not be read",
    { ...asked(closed), rulesUnseen: "rules that could not be read: the tables filter" },
    "failed",
    /^other machines do not get[^]*the tables filter/,
  ],
  [
    "a rule that drops VRRP",
    { ...asked(), foreignRules: [{ ...blocks, text: "ip protocol 112 drop" }] },
    "failed",
    /both may have the address/,
  ],
])("asked from outside: %s", (_what, seen, status, ...words) => {
  const row: DiagnosisRow = diagnose({ ...HEALTHY, ...seen }).find(({ id }) => id === "outside")!;
  expect(row.notAsked === true ? "not asked" : row.status).toBe(status);
  for (const text of words)
    expect([row.cause, ...row.evidence, row.fix].filter(Boolean).join("\n")).toMatch(text);
});
