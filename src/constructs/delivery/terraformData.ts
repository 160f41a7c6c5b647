import {
  anyToHclTerraform,
  anyToTerraform,
  hashMapper,
  hashMapperHcl,
  TerraformResource,
  type TerraformMetaArguments,
} from "cdktf";
import type { Construct } from "constructs";

export interface TerraformDataConfig extends TerraformMetaArguments {
  /** Kept in the state, and known to provisioners as `self.input`. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** The resource is replaced when one of these changes. */
  readonly triggersReplace?: Readonly<Record<string, unknown>> | readonly unknown[];
}

/**
 * A `terraform_data`, for which no provider is needed. The class of the library (`DataResource`) runs `terraform version` at
 * each synth, for each resource again, which takes most of its time, and refuses where only OpenTofu is installed.
 * Terraform before 1.4 does not know the resource, and says so when it plans.
 */
export class TerraformData extends TerraformResource {
  constructor(
    scope: Construct,
    id: string,
    private readonly config: TerraformDataConfig = {},
  ) {
    super(scope, id, {
      ...config,
      terraformResourceType: "terraform_data",
      terraformGeneratorMetadata: { providerName: "terraform" },
    });
  }

  /** Made by Terraform, another one with each resource. */
  get id(): string {
    return this.getStringAttribute("id");
  }

  protected override synthesizeAttributes(): Record<string, unknown> {
    return this.attributes(hashMapper(anyToTerraform));
  }

  protected override synthesizeHclAttributes(): Record<string, unknown> {
    return this.attributes(hashMapperHcl(anyToHclTerraform));
  }

  private attributes(mapped: (value: unknown) => unknown): Record<string, unknown> {
    const { input, triggersReplace } = this.config;
    return { input: mapped(input), triggers_replace: mapped(triggersReplace) };
  }
}
