import ts from "typescript";
import { parsed } from "./parsed.js";

/**
 * Closes by number of what the file did not open itself: `LINE: CODE`. Whoever opened it closes the number again, which by
 * then may be that of another file.
 */
export function foreignCloses(text: string): string[] {
  const source = parsed(text);
  const origins = originsOf(source);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && CLOSES.test(node.expression.getText())) {
      const [closed] = node.arguments;
      if (closed === undefined || !isOwn(closed, origins)) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart());
        found.push(`${line + 1}: ${node.getText()}`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const CLOSES = /^(?:(?:\w+\.)?closeSync|fs\.close)$/;
const OPENS = /^(?:\w+\.)?openSync\(/;

type Origins = ReadonlyMap<string, readonly ts.Expression[]>;

/** Whether a value is what an `openSync` of the file returned, directly or by way of variables. */
function isOwn(value: ts.Expression, origins: Origins, passed: readonly string[] = []): boolean {
  if (OPENS.test(value.getText())) return true;
  if (ts.isArrayLiteralExpression(value))
    return value.elements.every((element) => isOwn(element, origins, passed));
  if (ts.isCallExpression(value) && ts.isPropertyAccessExpression(value.expression)) {
    const { name, expression } = value.expression;
    if (name.text === "splice") return isOwn(expression, origins, passed);
    const [made] = value.arguments;
    return name.text === "map" && made !== undefined && ts.isArrowFunction(made)
      ? OPENS.test(made.body.getText())
      : false;
  }
  if (!ts.isIdentifier(value) || passed.includes(value.text)) return false;
  const from = origins.get(value.text) ?? [];
  return from.length > 0 && from.every((one) => isOwn(one, origins, [...passed, value.text]));
}

/** All that the variables of a file get, by name. What a function is called with is not known. */
function originsOf(source: ts.SourceFile): Origins {
  const origins = new Map<string, ts.Expression[]>();
  const add = (to: ts.Node, from: ts.Expression): void => {
    if (ts.isIdentifier(to)) origins.set(to.text, [...(origins.get(to.text) ?? []), from]);
    else if (ts.isArrayBindingPattern(to) || ts.isArrayLiteralExpression(to))
      to.elements.forEach((element, i) => {
        const one = ts.isArrayLiteralExpression(from) ? from.elements[i] : from;
        if (one !== undefined) add(ts.isBindingElement(element) ? element.name : element, one);
      });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.initializer !== undefined) add(node.name, node.initializer);
    if (ts.isForOfStatement(node) && ts.isVariableDeclarationList(node.initializer))
      add(node.initializer.declarations[0]!.name, node.expression);
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken)
      add(node.left, node.right);
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { name, expression } = node.expression;
      if (name.text === "push") for (const argument of node.arguments) add(expression, argument);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return origins;
}
