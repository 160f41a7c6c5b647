import ts from "typescript";

/** What kinds of single faults there are; a table of the last run counts by them. */
export type FaultKind =
  | "comparison"
  | "logic"
  | "condition"
  | "arithmetic"
  | "number"
  | "flag"
  | "text"
  | "regex"
  | "default"
  | "call"
  | "step";

/** One fault that a source can be given, as a replacement of a part of its text. */
export interface Fault {
  readonly kind: FaultKind;
  /** Path from the root. */
  readonly file: string;
  /** Of the part that is replaced, from 1. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  /** What stands there, and what the fault makes of it. */
  readonly from: string;
  readonly to: string;
  /** Whether the part is an expression; else it is a statement that may be left out. */
  readonly expression: boolean;
}

type Found = Pick<Fault, "kind" | "to"> & { readonly node: ts.Node; readonly expression?: boolean };

/** Every fault of a file, in the order of its text. */
export function faultsOf(file: string, text: string): Fault[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Found[] = [];
  const visit = (node: ts.Node): void => {
    if (isSilent(node)) return;
    found.push(...faultsAt(node));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found
    .map(({ kind, to, node, expression = true }): Fault => {
      const start = node.getStart(source);
      const from = text.slice(start, node.end);
      const line = source.getLineAndCharacterOfPosition(start).line + 1;
      return { kind, file, line, start, end: node.end, from, to, expression };
    })
    .sort((a, b) => a.start - b.start || a.end - b.end);
}

/** Parts without behaviour: types, imports, and what a problem says in words. */
function isSilent(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node) ||
    ts.isModuleDeclaration(node) ||
    (ts.isEnumDeclaration(node) && isConst(node))
  );
}

const isConst = (node: ts.EnumDeclaration): boolean =>
  node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ConstKeyword) ?? false;

function faultsAt(node: ts.Node): Found[] {
  if (ts.isBinaryExpression(node)) return ofBinary(node);
  if (ts.isConditionalExpression(node)) {
    const [test, yes, no] = [node.condition, node.whenTrue, node.whenFalse].map((part) => part.getText());
    return [{ kind: "condition", node, to: `${test} ? ${no} : ${yes}` }];
  }
  if (ts.isIfStatement(node)) return ofIf(node);
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
    return [{ kind: "condition", node, to: node.operand.getText() }];
  if (ts.isRegularExpressionLiteral(node)) return ofRegex(node);
  if (ts.isCallExpression(node)) return ofCall(node);
  if (ts.isExpressionStatement(node)) return ofStep(node);
  return isValue(node) ? ofLiteral(node) : [];
}

const SWAPPED: Partial<Record<ts.SyntaxKind, readonly [FaultKind, string]>> = {
  [ts.SyntaxKind.EqualsEqualsEqualsToken]: ["comparison", "!=="],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken]: ["comparison", "==="],
  [ts.SyntaxKind.LessThanToken]: ["comparison", "<="],
  [ts.SyntaxKind.LessThanEqualsToken]: ["comparison", "<"],
  [ts.SyntaxKind.GreaterThanToken]: ["comparison", ">="],
  [ts.SyntaxKind.GreaterThanEqualsToken]: ["comparison", ">"],
  [ts.SyntaxKind.AmpersandAmpersandToken]: ["logic", "||"],
  [ts.SyntaxKind.BarBarToken]: ["logic", "&&"],
  [ts.SyntaxKind.MinusToken]: ["arithmetic", "+"],
  [ts.SyntaxKind.AsteriskToken]: ["arithmetic", "/"],
};

function ofBinary(node: ts.BinaryExpression): Found[] {
  const [left, right] = [node.left.getText(), node.right.getText()];
  const { kind } = node.operatorToken;
  if (kind === ts.SyntaxKind.QuestionQuestionToken) return [{ kind: "default", node, to: left }];
  if (kind === ts.SyntaxKind.PlusToken && !isText(node.left) && !isText(node.right))
    return [{ kind: "arithmetic", node, to: `${left} - ${right}` }];
  const swapped = SWAPPED[kind];
  // Other operators bind less tightly, so each side keeps its own parentheses.
  return swapped === undefined ? [] : [{ kind: swapped[0], node, to: `(${left}) ${swapped[1]} (${right})` }];
}

function isText(node: ts.Expression): boolean {
  if (ts.isBinaryExpression(node)) return isText(node.left) || isText(node.right);
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

/** A guard that is left out, or a condition turned round. */
function ofIf(node: ts.IfStatement): Found[] {
  const turned: Found = { kind: "condition", node: node.expression, to: `!(${node.expression.getText()})` };
  return node.elseStatement === undefined
    ? [turned, { kind: "step", node, to: "", expression: false }]
    : [turned];
}

function ofStep(node: ts.ExpressionStatement): Found[] {
  const { expression } = node;
  // Without `super(…)` nothing runs, and what an assignment leaves undone is mostly a type error.
  if (ts.isCallExpression(expression) && expression.expression.kind === ts.SyntaxKind.SuperKeyword) return [];
  return [{ kind: "step", node, to: "", expression: false }];
}

const METHODS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    every: "some",
    some: "every",
    startsWith: "endsWith",
    endsWith: "startsWith",
    min: "max",
    max: "min",
    indexOf: "lastIndexOf",
    lastIndexOf: "indexOf",
  }),
);
/** Methods whose result may as well be what they are called on. */
const IDENTITIES = new Set(["filter", "toLowerCase", "toUpperCase", "trim", "trimEnd", "reverse", "sort"]);

function ofCall(node: ts.CallExpression): Found[] {
  const called = node.expression;
  // A chain with `?.` would be cut in two, of which the second part does not end with the first.
  if (!ts.isPropertyAccessExpression(called) || ts.isOptionalChain(node)) return [];
  const on = called.expression.getText();
  const name = called.name.text;
  const args = node.arguments.map((argument) => argument.getText()).join(", ");
  const other = METHODS.get(name);
  if (other !== undefined) return [{ kind: "call", node, to: `${on}.${other}(${args})` }];
  return IDENTITIES.has(name) ? [{ kind: "call", node, to: on }] : [];
}

/** Anchors, quantifiers and flags. */
function ofRegex(node: ts.RegularExpressionLiteral): Found[] {
  const [, body = "", flags = ""] = /^\/(.*)\/(\w*)$/s.exec(node.text) ?? [];
  const bodies = [
    body.startsWith("^") ? body.slice(1) : undefined,
    body.endsWith("$") && !body.endsWith("\\$") ? body.slice(0, -1) : undefined,
    body.includes("\\b") ? body.replace("\\b", "") : undefined,
    ...[...body.matchAll(/(?<=[\])\w])[+*](?![?+*])/g)].map(
      (at) => body.slice(0, at.index) + (at[0] === "+" ? "*" : "+") + body.slice(at.index + 1),
    ),
  ].filter((one) => one !== undefined && one !== "" && one !== body && isRegex(one, flags));
  const found = bodies.map((one): Found => ({ kind: "regex", node, to: `/${one}/${flags}` }));
  if (flags.includes("i")) found.push({ kind: "regex", node, to: `/${body}/${flags.replace("i", "")}` });
  return found;
}

function isRegex(body: string, flags: string): boolean {
  try {
    return new RegExp(body, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

/** Whether a literal is a value at run time, and not the name of a field or a type. */
function isValue(node: ts.Node): boolean {
  const { parent } = node;
  if (parent === undefined || ts.isLiteralTypeNode(parent) || ts.isEnumMember(parent)) return false;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return false;
  if (ts.isBindingElement(parent) && parent.propertyName === node) return false;
  return !(ts.isElementAccessExpression(parent) && parent.argumentExpression === node);
}

function ofLiteral(node: ts.Node): Found[] {
  const inDefault =
    (ts.isParameter(node.parent) || ts.isBindingElement(node.parent)) && node.parent.initializer === node;
  const kind = (usual: FaultKind): FaultKind => (inDefault ? "default" : usual);
  if (ts.isNumericLiteral(node)) return [{ kind: kind("number"), node, to: `(${node.text} + 1)` }];
  if (node.kind === ts.SyntaxKind.TrueKeyword) return [{ kind: kind("flag"), node, to: "false" }];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return [{ kind: kind("flag"), node, to: "true" }];
  // Sentences are read by people: a test of their wording would only say them twice.
  if (ts.isStringLiteral(node) && node.text !== "" && !/\s/.test(node.text))
    return [{ kind: kind("text"), node, to: '""' }];
  return [];
}
