import { Fn, Op, ref } from "cdktf";
import { formatProblem, isPort, type Problem, problem, type ProblemCode } from "../../model/index.js";
import { accepting, type DescribedRule } from "../../model/text/textRule.js";
import type { SshDeliveryOptions, SshLogin } from "./connection.js";
import { escapeTemplate, isKnown, textArgument } from "../props/tokens.js";

/** Every problem of the options, at the name of the static method. */
export function sshProblems(options: SshDeliveryOptions): Problem[] {
  const at = (name: string): string => `Delivery.ssh.${name}`;
  const { user = "root", sudo = false, bastion, connectTimeoutSeconds: seconds, scriptPath } = options;
  const problems = loginProblems(options, at);
  if (isKnown(user) && user !== "root" && !sudo) {
    const fix = "Set `sudo: true` and let the user run sudo without a password, or log in as root.";
    const more = { received: user, allowed: ROOT.allowed, fix };
    problems.push(problem("delivery.bad-connection", at("user"), "may not change the host", more));
  }
  if (bastion !== undefined) {
    problems.push(...loginProblems(bastion, (name) => at(`bastion.${name}`)));
    problems.push(...portProblems(bastion.port, at("bastion.port")));
    problems.push(...addressProblems(bastion.address, at("bastion.address")));
  }
  problems.push(
    ...portProblems(options.port, at("port")),
    ...addressProblems(options.address, at("address")),
  );
  if (isKnown(seconds) && seconds !== undefined && !isWithin(seconds, 1, 3600)) {
    const more = { received: seconds, allowed: "1 to 3600 seconds" };
    problems.push(problem("config.out-of-range", at("connectTimeoutSeconds"), "is out of range", more));
  }
  if (scriptPath !== undefined && isKnown(scriptPath) && !accepting(SCRIPT)(scriptPath)) {
    const { allowed } = SCRIPT;
    problems.push(badConnection(at("scriptPath"), "is not the path of a script", scriptPath, allowed));
  } else if (scriptPath !== undefined && isKnown(scriptPath) && !accepting(CLOSED_SCRIPT)(scriptPath)) {
    const { allowed } = CLOSED_SCRIPT;
    const more = { received: scriptPath, allowed };
    const message = "is in a directory where every user of the host can create and remove files";
    problems.push(problem("delivery.open-script-path", at("scriptPath"), message, more));
  }
  return [...problems, ...destroyProblems(options, at)];
}

/** A check by Terraform. */
interface Condition {
  readonly condition: unknown;
  readonly error_message: string;
}

/**
 * Texts of a connection that only Terraform knows are the one thing that no host can check: without a key, Terraform
 * would take any machine for the host, and a script in an open directory is another user's before the host sees it.
 * A wrong port does no harm: nothing answers.
 */
export function connectionConditions(options: SshDeliveryOptions): Condition[] {
  const { sudo = false, bastion, address, scriptPath } = options;
  const bad = (
    name: string,
    rule: DescribedRule,
    value: unknown,
    code: ProblemCode = "delivery.bad-connection",
  ) => conditionOf(problem(code, `Delivery.ssh.${name}`, `is not ${rule.allowed}`, rule), rule, value);
  const login = (prefix: string, { user, hostKey }: SshLogin): Condition[] => [
    ...bad(`${prefix}user`, prefix === "" && !sudo ? ROOT : USER, user),
    ...bad(`${prefix}hostKey`, PUBLIC_KEY, hostKey),
  ];
  return [
    ...login("", options),
    ...bad("address", ADDRESS, address),
    ...bad("scriptPath", SCRIPT, scriptPath),
    ...bad("scriptPath", CLOSED_SCRIPT, scriptPath, "delivery.open-script-path"),
    ...(bastion === undefined
      ? []
      : [...login("bastion.", bastion), ...bad("bastion.address", ADDRESS, bastion.address)]),
  ];
}

function conditionOf(what: Problem, { pattern, never }: DescribedRule, value: unknown): Condition[] {
  if (typeof value !== "string" || isKnown(value)) return [];
  const like = (one: string): unknown => Fn.can(Fn.regex(textArgument(one), textArgument(value)));
  const conditions = [like(pattern), ...(never === undefined ? [] : [Op.not(like(never))])];
  // Terraform refuses a condition that refers to nothing, as of a value from functions alone: `Fn.file("key.pub")`.
  const refers = Fn.can(ref("path.module"));
  return [
    {
      condition: Fn.alltrue([...conditions, refers]),
      error_message: escapeTemplate(formatProblem(what)),
    },
  ];
}

const REFERENCE = "a reference to a sensitive value";

const USER: DescribedRule = {
  pattern: "^[A-Za-z_][0-9A-Za-z_.-]*[$]?$",
  allowed: "a user name of letters, digits, `_`, `.` and `-`",
};
/** Only root, or a user with sudo, can change a host. */
const ROOT: DescribedRule = { pattern: "^root$", allowed: "`root`, or any user with `sudo: true`" };
const ADDRESS: DescribedRule = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9.:-]*$",
  allowed: "a host name or an IP address",
};
const PUBLIC_KEY: DescribedRule = {
  pattern: "^(?:ssh-|ecdsa-|sk-)[0-9A-Za-z_@.-]+ [A-Za-z0-9+/]+={0,2}(?: [^\\n]*)?\\n?$",
  allowed: "type and key as in /etc/ssh/ssh_host_ecdsa_key.pub, without the host's name",
};
const SCRIPT: DescribedRule = {
  pattern: "^/[0-9A-Za-z_./%-]+$",
  allowed: "an absolute path of letters, digits, `.`, `_`, `-` and `%RAND%`",
};
/** Not in one of the directories of mode 1777 that every host has. */
const CLOSED_SCRIPT: DescribedRule = {
  pattern: "^/",
  never: "^/+(?:tmp|var/+tmp|dev/+shm|run/+lock|var/+lock)/|/\\.\\./",
  allowed: "a path in a directory that only the login user can enter",
};

function loginProblems(login: SshLogin, at: (name: string) => string): Problem[] {
  const { user, hostKey, privateKey, privateKeyFile, certificate } = login;
  const problems: Problem[] = [];
  if (user !== undefined && isKnown(user) && !accepting(USER)(user)) {
    problems.push(badConnection(at("user"), "is not a user name", user, USER.allowed));
  }
  problems.push(...verificationProblems(login, at));
  if (hostKey !== undefined && isKnown(hostKey) && !accepting(PUBLIC_KEY)(hostKey)) {
    problems.push(badConnection(at("hostKey"), "is not a public key", hostKey, PUBLIC_KEY.allowed));
  }
  if (privateKey !== undefined && privateKeyFile !== undefined) {
    const fix = "Set either `privateKey` or `privateKeyFile`.";
    problems.push(
      problem("delivery.bad-connection", at("privateKey"), "is set together with `privateKeyFile`", { fix }),
    );
  }
  if (privateKey !== undefined && isKnown(privateKey)) {
    // The value is not shown: it may well be a key.
    problems.push(
      problem("delivery.clear-text-key", at("privateKey"), "is a literal", { allowed: REFERENCE }),
    );
  }
  if (privateKeyFile?.endsWith(".pub") === true) {
    const allowed = "the path of the private key, without `.pub`";
    problems.push(
      badConnection(at("privateKeyFile"), "is a public key, by its name", privateKeyFile, allowed),
    );
  }
  if (privateKeyFile === "") {
    problems.push(badConnection(at("privateKeyFile"), "is empty", "", "the path of a file"));
  }
  if (certificate !== undefined && privateKey === undefined && privateKeyFile === undefined) {
    const fix = "Set `privateKey` or `privateKeyFile` to the key that belongs to the certificate.";
    problems.push(problem("delivery.bad-connection", at("certificate"), "has no private key", { fix }));
  }
  return problems;
}

/** A key that was forgotten, or a variable that is not set, must not look like a choice. */
function verificationProblems(
  { hostKey, verifyHostKey = true }: SshLogin,
  at: (name: string) => string,
): Problem[] {
  if (verifyHostKey && hostKey === undefined) {
    const allowed = "type and key as in /etc/ssh/ssh_host_ecdsa_key.pub of the server";
    return [problem("delivery.unverified-host", at("hostKey"), "is missing", { allowed })];
  }
  if (verifyHostKey || hostKey === undefined) return [];
  const fix = "Remove `verifyHostKey: false`, or remove `hostKey`.";
  return [problem("delivery.bad-connection", at("verifyHostKey"), "is false, but `hostKey` is set", { fix })];
}

function destroyProblems(options: SshDeliveryOptions, at: (name: string) => string): Problem[] {
  const { whenDestroyed = "restore", privateKeyInState = false, bastion } = options;
  if (whenDestroyed === "keep" || privateKeyInState) return [];
  const given = { privateKey: options.privateKey, "bastion.privateKey": bastion?.privateKey };
  return Object.entries(given).flatMap(([name, key]) =>
    key === undefined || isKnown(key)
      ? []
      : [problem("delivery.key-at-destroy", at(name), "is not available to a destroy")],
  );
}

function portProblems(port: number | undefined, path: string): Problem[] {
  if (port === undefined || !isKnown(port) || isPort(port)) return [];
  return [problem("config.out-of-range", path, "is not a port", { received: port, allowed: "1 to 65535" })];
}

function addressProblems(address: string | undefined, path: string): Problem[] {
  if (address === undefined || !isKnown(address) || accepting(ADDRESS)(address)) return [];
  return [badConnection(path, "is not a host name or an IP address", address, ADDRESS.allowed)];
}

const isWithin = (value: number, from: number, to: number): boolean =>
  Number.isInteger(value) && value >= from && value <= to;

function badConnection(path: string, message: string, received: unknown, allowed: string): Problem {
  return problem("delivery.bad-connection", path, message, { received, allowed });
}
