import type { ExpectationInput, SettingsFile } from "../model/index.js";
import type { ApplicationDefinition, ApplicationRoute } from "./definition.js";

type ItemOfFile = SettingsFile["items"][number];

/**
 * Makes the definition of one of several applications on a host: rows of `portico doctor`, settings files and expected
 * responses have a name in front, so that an application may be there twice.
 *
 * @param name of the site, or of the application below a path
 */
export function ofSite(name: string, definition: ApplicationDefinition): ApplicationDefinition {
  const { rows = [], settings, daemons, trees, routes } = definition;
  const own = new Set(rows.map(({ code }) => code));
  const named = (text: string): string => `${name}-${text}`;
  const titled = (text: string): string => `${name}: ${text}`;
  // Other codes are those of rows that every host has.
  const coded = (code: string): string => (own.has(code) ? named(code) : code);
  const withCode = <T extends { readonly code?: string | undefined }>(one: T): T =>
    one.code === undefined ? one : { ...one, code: coded(one.code) };
  const expected = (row: ExpectationInput): ExpectationInput => ({
    ...row,
    ...(row.name !== undefined && { name: titled(row.name) }),
    ...(row.causes && {
      causes: row.causes.map((cause) => ({
        ...withCode(cause),
        ...(cause.because && { because: cause.because.map(coded) }),
      })),
    }),
  });
  const expecting = ({ expect, ...route }: ApplicationRoute): ApplicationRoute =>
    expect === undefined || expect === false
      ? { ...route, ...(expect === false && { expect }) }
      : { ...route, expect: expect.map(expected) };
  return {
    ...definition,
    routes: (place) =>
      Object.fromEntries(Object.entries(routes(place)).map(([id, route]) => [id, expecting(route!)])),
    ...(settings && {
      settings: (place) =>
        settings(place).map((file) => {
          const items = (file.items as ItemOfFile[]).map(withCode);
          return { ...file, name: named(file.name), items } as SettingsFile;
        }),
    }),
    ...(daemons && {
      daemons: daemons.map((daemon) => ({
        ...withCode(daemon),
        ...(daemon.restartOn && { restartOn: daemon.restartOn.map(named) }),
      })),
    }),
    ...(trees && { trees: trees.map(withCode) }),
    rows: rows.map(({ code, title }) => ({ code: named(code), title: titled(title) })),
  };
}
