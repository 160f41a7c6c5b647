import {
  Aspects,
  DefaultTokenResolver,
  Fn,
  StringConcat,
  type TerraformResource,
  TerraformStack,
  Tokenization,
} from "cdktf";
import { dependOn } from "./delivery/terraformData.js";
import { addPreconditions, type LateCheck } from "./props/lateChecks.js";

/** Files with a check in common: all of their checks are at the first one, and the others are written after it. */
interface Group {
  readonly first: TerraformResource;
  readonly checks: Map<string, LateCheck>;
}

type Checks = () => readonly LateCheck[];
const checked = new WeakMap<TerraformStack, Map<TerraformResource, Checks>>();

/**
 * Has Terraform check the values of a file before it writes the file. Several files may be made of one value: its
 * problems are reported once, together with all other problems of these files.
 */
export function checkBefore(file: TerraformResource, checks: Checks): void {
  const stack = TerraformStack.of(file);
  const files = checked.get(stack) ?? new Map<TerraformResource, Checks>();
  if (!checked.has(stack)) {
    checked.set(stack, files);
    Aspects.of(stack).add({ visit: (node) => void (node === stack && write(stack, files)) });
  }
  files.set(file, checks);
}

function write(stack: TerraformStack, files: ReadonlyMap<TerraformResource, Checks>): void {
  const groups = new Set<Group>();
  for (const [file, checks] of files) {
    const own: Group = { first: file, checks: new Map(checks().map((one) => [keyOf(stack, one), one])) };
    const [group, ...others] = [...groups].filter((one) =>
      [...own.checks.keys()].some((key) => one.checks.has(key)),
    );
    if (group === undefined) {
      groups.add(own);
      continue;
    }
    for (const { first, checks: more } of [...others, own]) {
      more.forEach((check, key) => group.checks.set(key, check));
      dependOn(first, () => [group.first]);
    }
    others.forEach((one) => groups.delete(one));
  }
  for (const { first, checks } of groups) addPreconditions(first, byMessage([...checks.values()]));
}

const keyOf = (scope: TerraformStack, check: LateCheck): string =>
  JSON.stringify(
    Tokenization.resolve(check, { scope, resolver: new DefaultTokenResolver(new StringConcat()) }),
  );

/** Conditions with the same message are combined. */
function byMessage(checks: readonly LateCheck[]): LateCheck[] {
  return [...new Set(checks.map((check) => check.error_message))].map((message) => {
    const same = checks.filter((check) => check.error_message === message).map(({ condition }) => condition);
    return { condition: same.length === 1 ? same[0] : Fn.alltrue(same), error_message: message };
  });
}
