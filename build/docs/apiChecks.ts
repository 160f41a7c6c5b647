import type { ApiExport, ApiMember } from "./api.js";
import { fieldOf } from "../options.js";

/** What is wrong with the docstrings of the API, one line each. */
export function docProblems(api: readonly ApiExport[]): string[] {
  return api.flatMap((one) => [
    ...(one.doc.text === "" ? [`${one.name} has no docstring`] : []),
    ...one.members.flatMap((member) => [
      ...(member.doc.text === "" ? [`${one.name}.${member.name} has no docstring`] : []),
      ...factProblems(one, member),
    ]),
  ]);
}

/** A docstring repeats default and range of the field that the option becomes, so that an editor shows them. */
function factProblems({ name: owner }: ApiExport, { name, doc }: ApiMember): string[] {
  const field = fieldOf(owner, name);
  if (field === undefined) return [];
  const at = `${owner}.${name}`;
  const isField = doc.text.startsWith(field.description ?? " ");
  if (isField && doc.byDefault === undefined) return [];
  const { default: byDefault, minimum, maximum } = field;
  const range = `${minimum} to ${maximum}`;
  return [
    ...(byDefault === undefined || OWN_DEFAULT.includes(at) || saysDefault(doc.byDefault, byDefault)
      ? []
      : [`${at} says \`@default ${doc.byDefault ?? ""}\`, the schema ${JSON.stringify(byDefault)}`]),
    ...(isField || minimum === undefined || maximum === Number.MAX_SAFE_INTEGER || doc.text.includes(range)
      ? []
      : [`${at} does not say that it goes from ${range}`]),
  ];
}

/** A scalar is given as it is, with words after it if need be; what is empty is described in words. */
function saysDefault(said: string | undefined, byDefault: unknown): boolean {
  if (said === undefined) return false;
  const value = JSON.stringify(byDefault);
  if (said === value) return true;
  if (typeof byDefault === "object" || byDefault === "") return said.startsWith("- ");
  return said.startsWith(`${value} (`);
}

/** Where the constructs give a field another default than its schema, which their docstring says. */
const OWN_DEFAULT = ["AcmeOptions.agreeToTerms", "ProxyLogs.access", "ProxyLogs.error", "ProxySettings.logs"];
