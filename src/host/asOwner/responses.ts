import { posix } from "node:path";
import * as z from "zod";
import { IMAGE, type ImageResponse } from "./imageSearch.js";
import { NEEDED, SHOWN_MAX, type Walked, type WalkRequest } from "./treeWalk.js";
import type { KeptReason } from "./modes.js";
import type { Operation, Operations } from "./operations.js";
import type { ReadResponse } from "./ownerFile.js";
import { type OwnerRefusal, SETTINGS_BYTES_MAX } from "./refused.js";

/*
 * What a child of `asOwner` may respond. The user that it has become can do with it what he likes, so its response is
 * his word: what is not in these schemas, or more than they allow, is no response. They hold numbers, names of reasons,
 * and paths; no text for people.
 */

export type OwnerResponse<K extends Operation> = Awaited<ReturnType<Operations[K]>>;

export interface ResponseLimits<T> {
  readonly schema: z.ZodType<T>;
  readonly bytesMax: number;
  readonly valuesMax: number;
}

const ID = z.int().min(0).max(0xffff_ffff);
/** The system's error numbers, whether Node knows them or not. */
const ERRNO = z.int().min(-4_095).max(-1);
/** The system takes 4,096 bytes; a name that is one too many is reported with its path. */
const PATH_BYTES_MAX = 8_192;
/** A text with one character a byte. */
const BYTES = z
  .string()
  .max(PATH_BYTES_MAX)
  .regex(/^[\x01-\xff]+$/);
const PATH = BYTES.refine((path) => path.startsWith("/") && posix.normalize(path) === path);
const VERSION = z
  .string()
  .max(200)
  .regex(/^\d+(?::-?\d+){4}$/);

const IMAGE_PATH = BYTES.refine(
  (path) => IMAGE.test(path) && path.split("/").every((name) => !["", ".", ".."].includes(name)),
);

const READ: z.ZodType<ReadResponse> = z.strictObject({
  target: PATH,
  content: z
    .string()
    .max(Math.ceil(SETTINGS_BYTES_MAX / 3) * 4)
    .regex(/^[\w+/]*={0,2}$/),
  version: VERSION,
  uid: ID,
  links: z.int().min(0),
});

const finding = (codes: readonly string[]) =>
  z
    .strictObject({
      path: PATH,
      code: z.enum(codes),
      kind: z.enum(["directory", "file"]),
      mode: z.int().min(0).max(0o7777),
      outside: z.boolean(),
      held: z.union([z.literal("links"), ID]).optional(),
    })
    .refine(({ kind, mode }) => (NEEDED[kind] & ~mode) !== 0);

/** Only root hands over: a user enters what he can, and leaves the rest. */
const NOTHING_HANDED_OVER = z.array(z.never()).max(0);

const walked = ({ tasks, entriesMax }: WalkRequest): z.ZodType<Walked> =>
  z.strictObject({
    findings: z.array(finding(tasks.map(({ code }) => code))).max(entriesMax),
    looked: z.int().min(0).max(entriesMax),
    complete: z.boolean(),
    unseen: z
      .array(z.strictObject({ path: BYTES, why: z.union([ERRNO, z.literal("links")]) }))
      .max(SHOWN_MAX),
    handedOver: NOTHING_HANDED_OVER,
  }) as z.ZodType<Walked>;

const IMAGE_RESPONSE: z.ZodType<ImageResponse> = z.strictObject({
  image: IMAGE_PATH.nullable(),
  handedOver: NOTHING_HANDED_OVER,
});

const KEPT: z.ZodType<KeptReason | null> = z.union([
  z.null(),
  ERRNO,
  z.enum(["replaced", "links", "changed"]),
]);

export const REFUSAL: z.ZodType<OwnerRefusal> = z.union([
  z.strictObject({ why: z.literal("system"), errno: ERRNO }),
  z.strictObject({ why: z.enum(["not-regular", "too-large", "changed"]) }),
  z.strictObject({ why: z.literal("foreign"), uid: ID }),
  z.strictObject({ why: z.literal("attributes"), uid: ID, gid: ID }),
]);

const KIBIBYTE = 1 << 10;
const MEBIBYTE = 1 << 20;
const FEW = 20;

const small = <T>(schema: z.ZodType<T>): ResponseLimits<T> => ({
  schema,
  bytesMax: 64 * KIBIBYTE,
  valuesMax: FEW,
});

/** How the response to a request has to look. */
export const RESPONSES: {
  readonly [K in Operation]: (request: Parameters<Operations[K]>[0]) => ResponseLimits<OwnerResponse<K>>;
} = {
  read: () => ({ schema: READ, bytesMax: 6 * MEBIBYTE, valuesMax: FEW }),
  replace: () => small(z.strictObject({ version: VERSION })),
  sweep: () => small(z.null()),
  realPath: () => small(PATH.nullable()),
  findImage: () => small(IMAGE_RESPONSE),
  contentsOf: () => small(z.enum(["some", "none", "unseen"])),
  changeModes: ({ changes }) => ({
    schema: z.array(KEPT).length(changes.length),
    bytesMax: KIBIBYTE + changes.length * 16,
    valuesMax: FEW + changes.length,
  }),
  walkTrees: (request) => ({
    schema: walked(request),
    bytesMax: 64 * MEBIBYTE,
    valuesMax: FEW + (request.entriesMax + SHOWN_MAX) * 7,
  }),
};
