import type { WantedCertificate as Wanted } from "../../model/serving.js";

/** What a fix is about. */
export interface About {
  readonly wanted: Wanted;
  readonly name: string;
  readonly port: number;
  readonly instance: string | undefined;
}

export interface Words {
  /** What happened; undefined where the authority's words are enough. */
  what(port: number): string | undefined;
  fix(about: About): string;
}

export const RETRIED = "Portico tries again later.";
