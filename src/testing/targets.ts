import { Construct, type IConstruct } from "constructs";
import { type PropTable, record, refuseOptions, required, text } from "../constructs/props/propTable.js";
import { ProblemError, problem, type ProxyConfig } from "../model/index.js";
import type { TestRequest } from "../model/resolution.js";

/** The argument of a helper, if it has the right type; in JavaScript no compiler checks that. */
export function constructGiven(helper: string, target: unknown): IConstruct {
  if (Construct.isConstruct(target)) return target;
  return refuse(`${helper}(target)`, target, "a construct: a stack, a front end or a proxy");
}

export function configGiven(helper: string, target: unknown): ProxyConfig {
  if (isObject(target) && "listeners" in target && "virtualServers" in target) return target as ProxyConfig;
  return refuse(`${helper}(target)`, target, "a construct, or a config that `renderProxyConfig` returned");
}

export function requestGiven(helper: string, request: unknown): TestRequest | string {
  const place = `${helper}(…, request)`;
  if (typeof request === "string") return request;
  if (!isObject(request) || !("url" in request))
    return refuse(place, request, "a URL as a string, or an object with `url`");
  refuseOptions(place, request as unknown as TestRequest, TEST_REQUEST);
  return request as unknown as TestRequest;
}

const TEST_REQUEST: PropTable<TestRequest> = {
  url: required(text),
  method: text,
  headers: record,
  clientAddress: text,
  certificateName: text,
  listener: text,
};

export function textGiven(place: string, value: unknown): string {
  return typeof value === "string" ? value : refuse(place, value, "a string");
}

function refuse(place: string, received: unknown, allowed: string): never {
  throw new ProblemError([
    received === undefined
      ? problem("config.missing-field", place, "is missing", { allowed, fix: `Pass ${allowed}.` })
      : problem("config.wrong-type", place, `is not ${allowed}`, {
          received,
          allowed,
          fix: `Pass ${allowed}.`,
        }),
  ]);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
