import { TerraformStack, Testing } from "cdktf";
import type { IConstruct } from "constructs";
import { HostFile } from "../constructs/index.js";
import { constructGiven, textGiven } from "./targets.js";

/** A file that a stack delivers to a host, from the synthesized stack: overrides and aspects included. */
export interface SynthesizedFile {
  /** Path on the host. */
  readonly path: string;
  /** Path that Terraform writes to, the delivery's root included. */
  readonly filename: string;
  /** Permissions, four octal digits. */
  readonly mode: string;
  /** Permissions of directories that Terraform creates. */
  readonly directoryMode: string;
  /** Whether plans hide the content. */
  readonly sensitive: boolean;
  /** The text; undefined if the text depends on values that Terraform knows only at apply, or if the file is copied. */
  readonly content?: string;
  /** The Terraform template of a text that is not known yet: `${tls_private_key.….private_key_pem}`. */
  readonly placeholder?: string;
  /** The source file of a copy, relative to the synthesized stack. */
  readonly source?: string;
}

/** Every file below a construct, sorted by path. */
export function synthesizedFiles(scope: IConstruct): readonly SynthesizedFile[] {
  const files = constructGiven("synthesizedFiles", scope)
    .node.findAll()
    .filter((construct) => construct instanceof HostFile);
  const stacks = new Map<TerraformStack, Synthesized>();
  const described = files.map((file) => {
    const stack = TerraformStack.of(file);
    let synthesized = stacks.get(stack);
    if (synthesized === undefined) {
      synthesized = JSON.parse(Testing.synth(stack)) as Synthesized;
      stacks.set(stack, synthesized);
    }
    const { terraformResourceType: type, friendlyUniqueId: id } = file.resource;
    const resource = synthesized.resource[type]![id]!;
    return type === "terraform_data" ? uploaded(file, resource, synthesized) : written(file, resource);
  });
  return described.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The file at a path on the host. Throws with a list of the existing files if there is no such file. */
export function synthesizedFile(scope: IConstruct, path: string): SynthesizedFile {
  const wanted = textGiven("synthesizedFile(…, path)", path);
  const files = synthesizedFiles(constructGiven("synthesizedFile", scope));
  const file = files.find((f) => f.path === wanted);
  if (file !== undefined) return file;
  throw new Error(`No file ${path} is synthesized. There is:\n${files.map((f) => `  ${f.path}`).join("\n")}`);
}

interface Synthesized {
  readonly resource: Record<string, Record<string, TerraformFileBlock>>;
  readonly locals?: Record<string, string>;
}

interface TerraformFileBlock {
  readonly filename?: string;
  readonly file_permission?: string;
  readonly directory_permission?: string;
  readonly content?: string;
  readonly source?: string;
  readonly triggers_replace?: { readonly mode: string };
  readonly provisioner?: readonly {
    readonly file?: { readonly content?: string; readonly source?: string };
  }[];
}

/** A file as a local delivery writes it. */
function written(file: HostFile, resource: TerraformFileBlock): SynthesizedFile {
  return withContent(resource, {
    path: file.path,
    filename: resource.filename!,
    mode: resource.file_permission!,
    directoryMode: resource.directory_permission!,
    sensitive: file.resource.terraformResourceType === "local_sensitive_file",
  });
}

/** A file as a delivery over ssh uploads it; activation makes directories as packages have them. */
function uploaded(
  file: HostFile,
  resource: TerraformFileBlock,
  { locals = {} }: Synthesized,
): SynthesizedFile {
  const { content, source } = resource.provisioner!.find(
    (provisioner) => provisioner.file !== undefined,
  )!.file!;
  const local = /^\$\{local\.([\w-]+)\}$/.exec(content ?? "")?.[1];
  return withContent(
    { content: local === undefined ? content : locals[local], source },
    {
      path: file.path,
      filename: file.path,
      mode: resource.triggers_replace!.mode,
      directoryMode: "0755",
      sensitive: file.sensitive,
    },
  );
}

function withContent(
  { content, source }: Pick<TerraformFileBlock, "content" | "source">,
  file: Omit<SynthesizedFile, "content" | "placeholder" | "source">,
): SynthesizedFile {
  if (content === undefined) return { ...file, source };
  const text = literal(content);
  return text === undefined ? { ...file, placeholder: content } : { ...file, content: text };
}

/** The text of a template without expressions; undefined if it has some. */
function literal(template: string): string | undefined {
  const known = template.replace(/\$\$\{|%%\{/g, "");
  return /\$\{|%\{/.test(known) ? undefined : template.replace(/([$%])\1\{/g, (escaped) => escaped.slice(1));
}
