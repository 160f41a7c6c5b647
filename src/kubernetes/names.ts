import { type Problem, problem } from "../model/index.js";

/**
 * Names and quantities that Kubernetes accepts
 * (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/).
 */

export interface NameRule {
  readonly pattern: RegExp;
  readonly lengthMax: number;
  readonly allowed: string;
}

/** The rule for the name of a front end. Its pods add 17 characters, and a host name has at most 63. */
export const FRONT_END_NAME: NameRule = {
  pattern: /^[a-z](?:[a-z0-9-]*[a-z0-9])?$/,
  lengthMax: 46,
  allowed: "up to 46 lower-case letters, digits and `-`, beginning with a letter and not ending in `-`",
};

export const LABEL_NAME: NameRule = {
  pattern: /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/,
  lengthMax: 63,
  allowed: "up to 63 lower-case letters, digits and `-`, with a letter or digit at both ends",
};

export const OBJECT_NAME: NameRule = {
  pattern: /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/,
  lengthMax: 253,
  allowed: "up to 253 lower-case letters, digits, `-` and `.`, with a letter or digit at both ends",
};

export function nameProblems(path: string, name: string | undefined, rule: NameRule): Problem[] {
  if (name === undefined || (rule.pattern.test(name) && name.length <= rule.lengthMax)) return [];
  const more = { received: name, allowed: rule.allowed };
  return [problem("kubernetes.bad-name", path, "is not a name that Kubernetes accepts", more)];
}

const LABEL_KEY = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)?$/;

/** @param taken keys that belong to the front end itself */
export function labelProblems(
  path: string,
  labels: Readonly<Record<string, unknown>> = {},
  taken: readonly string[] = [],
): Problem[] {
  return Object.entries(labels).flatMap(([key, value]) => {
    const at = `${path}.${key}`;
    if (taken.includes(key))
      return [
        problem("kubernetes.bad-name", at, "is a label that selects the pods of the front end", {
          received: value,
          fix: "Use another key for your label.",
        }),
      ];
    const fits =
      LABEL_KEY.test(key) && typeof value === "string" && value.length <= 63 && LABEL_VALUE.test(value);
    const more = {
      received: value,
      allowed:
        "a key and a value of up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
    };
    return fits ? [] : [problem("kubernetes.bad-value", at, "is not a label that Kubernetes accepts", more)];
  });
}

export const QUANTITIES = {
  cpu: {
    pattern: /^(?:\d+m|\d+(?:\.\d{1,3})?)$/,
    allowed: 'a quantity as text, such as "2", "0.5" or "500m"',
  },
  memory: { pattern: /^\d+(?:[kMGT]|[KMGT]i)?$/, allowed: 'a quantity as text, such as "512Mi" or "1Gi"' },
} as const;

export function quantityProblems(path: string, kind: "cpu" | "memory", value: string | undefined): Problem[] {
  const { pattern, allowed } = QUANTITIES[kind];
  if (value === undefined || (pattern.test(value) && Number.parseFloat(value) > 0)) return [];
  const more = { received: value, allowed, fix: `Use ${allowed}.` };
  return [problem("kubernetes.bad-value", path, "is not a quantity", more)];
}

/** CPUs of a quantity, rounded up: as many workers can be kept busy. */
export function wholeCpus(quantity: string): number {
  const cpus = quantity.endsWith("m") ? Number.parseInt(quantity, 10) / 1000 : Number(quantity);
  return Math.max(1, Math.ceil(cpus));
}

/** Bytes of a quantity of memory. */
export function bytesOf(quantity: string): number {
  const unit = quantity.replace(/[\di]/g, "").toUpperCase();
  return Number.parseInt(quantity, 10) * (quantity.endsWith("i") ? 1024 : 1000) ** " KMGT".indexOf(unit);
}

export const DURATION = 'a duration as text, such as "90s", "30m" or "10h"';

const FIXED_IMAGE = /@sha256:[0-9a-f]{64}$|:(?!latest$)[\w.-]+$/;

/** Warns of an image whose content can change under its name, so that a rollback may restore nothing. */
export function imageWarning(image: string): string | undefined {
  if (FIXED_IMAGE.test(image)) return undefined;
  return (
    `The image ${image} has no fixed tag or digest: pods that start later may run a different image, and a ` +
    "rollback may not restore the previous one. Use a version as the tag, or add the digest."
  );
}
