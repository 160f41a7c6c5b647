import { type TerraformMetaArguments, TerraformResource } from "cdktf";
import type { Construct } from "constructs";

/**
 * A resource of a provider whose package cdktn's registry may lack: arguments go to Terraform under its names, attributes
 * come back as references. Type and names are the provider's, so state is the same as with a package's resource.
 */
export abstract class OwnResource extends TerraformResource {
  private readonly own: Record<string, unknown>;
  private readonly maps: readonly string[];

  /** @param maps names of arguments whose keys are data */
  constructor(
    scope: Construct,
    id: string,
    type: string,
    config: TerraformMetaArguments,
    maps: readonly string[] = [],
  ) {
    const { connection, count, dependsOn, forEach, lifecycle, provider, provisioners, ...own } = config;
    const meta = { connection, count, dependsOn, forEach, lifecycle, provider, provisioners };
    super(scope, id, {
      terraformResourceType: type,
      terraformGeneratorMetadata: { providerName: type.split("_")[0]! },
      ...meta,
    });
    this.own = { ...own };
    this.maps = maps;
  }

  protected change(name: string, value: unknown): void {
    this.own[name] = value;
  }

  protected override synthesizeAttributes(): Record<string, unknown> {
    return this.renamed(this.own);
  }

  private renamed(fields: object): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        this.maps.includes(name) ? value : this.within(value),
      ]),
    );
  }

  private within(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.within(item));
    const isPlain =
      typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
    return isPlain ? this.renamed(value) : value;
  }
}
