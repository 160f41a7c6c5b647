import * as z from "zod";
import { type InputOf, shapeOf } from "../../model/schema/inferred.js";
import {
  any,
  choice,
  fields,
  flag,
  judged,
  listOf,
  number,
  type PropKind,
  type PropTable,
  required,
  text,
} from "./propTable.js";

/** Tables of the options that are inferred from a schema of the model: an interface and its table name the same schema. */

/**
 * Entries for fields of a schema of the model, which decides about their values.
 *
 * @param names without any, every field
 */
export const fieldsOf = <S extends z.ZodType, K extends keyof InputOf<S> & string>(
  schema: S,
  ...names: readonly K[]
) => tableOf(schema, names, (field) => (field.isOptional() ? any : judged));

/** Entries like those of {@link fieldsOf}, if the model sees the values only later: another kind is refused at once. */
export const kindsOf = <S extends z.ZodType, K extends keyof InputOf<S> & string>(
  schema: S,
  ...names: readonly K[]
) => tableOf(schema, names, (field) => (field.isOptional() ? kindOf(field) : required(kindOf(field))));

function tableOf<S extends z.ZodType, K extends keyof InputOf<S> & string>(
  schema: S,
  names: readonly K[],
  kind: (field: z.ZodType) => PropKind,
): Pick<PropTable<InputOf<S>>, K> {
  const fields = Object.entries(shapeOf(schema)).filter(
    ([name]) => names.length === 0 || names.includes(name as K),
  );
  return Object.fromEntries(fields.map(([name, field]) => [name, kind(field)])) as Pick<
    PropTable<InputOf<S>>,
    K
  >;
}

/** The kind of a field's value. Of a union, the model decides. */
function kindOf(field: z.ZodType): PropKind {
  if (field instanceof z.ZodString) return text;
  if (field instanceof z.ZodNumber) return number;
  if (field instanceof z.ZodBoolean) return flag;
  if (field instanceof z.ZodEnum) return choice(...(field.options as string[]));
  if (field instanceof z.ZodLiteral) return choice(...([...field.values] as string[]));
  if (field instanceof z.ZodArray) return listOf(kindOf(field.element as z.ZodType));
  if (field instanceof z.ZodObject) return fields<object>(kindsOf(field) as object);
  return "unwrap" in field ? kindOf((field as z.ZodOptional<z.ZodType>).unwrap()) : any;
}
