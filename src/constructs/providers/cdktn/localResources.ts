// Written by build/providerResources.ts from the provider's schema. Change that, not this file.
import type { TerraformMetaArguments } from "cdktf";
import type { Construct } from "constructs";
import { OwnResource } from "./ownResource.js";

export interface FileConfig extends TerraformMetaArguments {
  readonly content?: string;
  readonly contentBase64?: string;
  readonly directoryPermission?: string;
  readonly filePermission?: string;
  readonly filename: string;
  readonly source?: string;
}

/** `local_file` */
export class File extends OwnResource {
  constructor(scope: Construct, id: string, config: FileConfig) {
    super(scope, id, "local_file", config);
  }

  get content(): string {
    return this.getStringAttribute("content");
  }

  set content(value: string) {
    this.change("content", value);
  }

  get contentBase64(): string {
    return this.getStringAttribute("content_base64");
  }

  set contentBase64(value: string) {
    this.change("contentBase64", value);
  }

  get contentBase64Sha256(): string {
    return this.getStringAttribute("content_base64sha256");
  }

  get contentBase64Sha512(): string {
    return this.getStringAttribute("content_base64sha512");
  }

  get contentMd5(): string {
    return this.getStringAttribute("content_md5");
  }

  get contentSha1(): string {
    return this.getStringAttribute("content_sha1");
  }

  get contentSha256(): string {
    return this.getStringAttribute("content_sha256");
  }

  get contentSha512(): string {
    return this.getStringAttribute("content_sha512");
  }

  get directoryPermission(): string {
    return this.getStringAttribute("directory_permission");
  }

  set directoryPermission(value: string) {
    this.change("directoryPermission", value);
  }

  get filePermission(): string {
    return this.getStringAttribute("file_permission");
  }

  set filePermission(value: string) {
    this.change("filePermission", value);
  }

  get filename(): string {
    return this.getStringAttribute("filename");
  }

  set filename(value: string) {
    this.change("filename", value);
  }

  get source(): string {
    return this.getStringAttribute("source");
  }

  set source(value: string) {
    this.change("source", value);
  }
}

export interface SensitiveFileConfig extends TerraformMetaArguments {
  readonly content?: string;
  readonly contentBase64?: string;
  readonly directoryPermission?: string;
  readonly filePermission?: string;
  readonly filename: string;
  readonly source?: string;
}

/** `local_sensitive_file` */
export class SensitiveFile extends OwnResource {
  constructor(scope: Construct, id: string, config: SensitiveFileConfig) {
    super(scope, id, "local_sensitive_file", config);
  }

  get content(): string {
    return this.getStringAttribute("content");
  }

  set content(value: string) {
    this.change("content", value);
  }

  get contentBase64(): string {
    return this.getStringAttribute("content_base64");
  }

  set contentBase64(value: string) {
    this.change("contentBase64", value);
  }

  get contentBase64Sha256(): string {
    return this.getStringAttribute("content_base64sha256");
  }

  get contentBase64Sha512(): string {
    return this.getStringAttribute("content_base64sha512");
  }

  get contentMd5(): string {
    return this.getStringAttribute("content_md5");
  }

  get contentSha1(): string {
    return this.getStringAttribute("content_sha1");
  }

  get contentSha256(): string {
    return this.getStringAttribute("content_sha256");
  }

  get contentSha512(): string {
    return this.getStringAttribute("content_sha512");
  }

  get directoryPermission(): string {
    return this.getStringAttribute("directory_permission");
  }

  set directoryPermission(value: string) {
    this.change("directoryPermission", value);
  }

  get filePermission(): string {
    return this.getStringAttribute("file_permission");
  }

  set filePermission(value: string) {
    this.change("filePermission", value);
  }

  get filename(): string {
    return this.getStringAttribute("filename");
  }

  set filename(value: string) {
    this.change("filename", value);
  }

  get source(): string {
    return this.getStringAttribute("source");
  }

  set source(value: string) {
    this.change("source", value);
  }
}
