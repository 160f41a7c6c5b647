import { Aspects, TerraformProvider, TerraformStack } from "cdktf";
import type { Construct } from "constructs";

/**
 * Providers that a stack gets where it has none: versions that have all that the resources of this package need, and whose
 * next major version may not.
 */
const PROVIDERS = {
  local: { source: "hashicorp/local", version: "~> 2.4" },
  tls: { source: "hashicorp/tls", version: "~> 4.0" },
} as const;

class DefaultProvider extends TerraformProvider {
  constructor(stack: TerraformStack, name: keyof typeof PROVIDERS) {
    const { source, version } = PROVIDERS[name];
    super(stack, `portico-${name}`, {
      terraformResourceType: name,
      terraformGeneratorMetadata: { providerName: name, providerVersionConstraint: version },
      terraformProviderSource: source,
    });
  }
}

/** Stacks that have been told, by provider. */
const TOLD = { local: new WeakSet<TerraformStack>(), tls: new WeakSet<TerraformStack>() };

/**
 * Gives the stack of a resource its provider when the stack is synthesized, unless the stack has one then: a stack that
 * makes a `LocalProvider` chooses its version and arguments.
 */
export function provideFor(scope: Construct, name: keyof typeof PROVIDERS): void {
  const stack = TerraformStack.of(scope);
  if (TOLD[name].has(stack)) return;
  TOLD[name].add(stack);
  Aspects.of(stack).add({
    visit: (node) => {
      if (node !== stack) return;
      const isThere = stack.node
        .findAll()
        .some((one) => TerraformProvider.isTerraformProvider(one) && one.terraformResourceType === name);
      if (!isThere) new DefaultProvider(stack, name);
    },
  });
}
