import ts from "typescript";
import { parsed } from "./parsed.js";

/** Fields of classes that come after a method: `PATH:LINE: NAME`. A method that is bound, and so a field, is none. */
export function lateFields(path: string, text: string): string[] {
  const source = parsed(text);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isClassLike(node)) {
      const first = node.members.findIndex(
        (member) => "body" in member || ts.isConstructorDeclaration(member),
      );
      for (const member of first === -1 ? [] : node.members.slice(first)) {
        if (!ts.isPropertyDeclaration(member) || isFunction(member.initializer)) continue;
        const { line } = source.getLineAndCharacterOfPosition(member.getStart(source));
        found.push(`${path}:${line + 1}: ${member.name.getText(source)}`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const isFunction = (node: ts.Expression | undefined): boolean =>
  node !== undefined && (ts.isArrowFunction(node) || ts.isFunctionExpression(node));
