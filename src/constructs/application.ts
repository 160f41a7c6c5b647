import type { ApplicationDefinition } from "../applications/index.js";

/**
 * An application that a `FileSyncFrontEnd` is the front end of: its upstreams, routes, settings and expected responses. A
 * closed choice: take one of the static methods.
 */
export class Application<Upstreams extends object = object, Routes extends object = object> {
  declare protected readonly upstreams: Upstreams;
  declare protected readonly routes: Routes;

  private constructor(
    /** @internal */
    readonly definition: ApplicationDefinition,
  ) {}
}
