import * as z from "zod";

/** Types and field names that are inferred from a schema. */

/** A type with every property read-only, at every depth. */
export type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/**
 * An object as it may be written: defaults left out. Options are interfaces that extend it; the declarations of the package
 * and `docs/api/` have their fields written out, with the texts of the schema (`build/options.ts`).
 */
export type InputOf<S extends z.ZodType> = DeepReadonly<NonNullable<z.input<S>>>;

/** An object as it is read: every default filled in. */
export type OutputOf<S extends z.ZodType> = DeepReadonly<z.output<S>>;

/** The fields of an object by their names, whatever default or description the object has. */
export function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> {
  let object = schema;
  while (!(object instanceof z.ZodObject)) object = (object as z.ZodOptional<z.ZodType>).unwrap();
  return object.shape as Readonly<Record<string, z.ZodType>>;
}
