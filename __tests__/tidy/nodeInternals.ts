import ts from "typescript";
import { parsed } from "./parsed.js";

/** Names of Node's that are undocumented, wherever code (no comment) uses them. */
export function nodeInternals(text: string): string[] {
  const source = parsed(text);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && isMember(node) && INTERNAL_MEMBERS.test(node.text)) found.push(node.text);
    if (ts.isStringLiteralLike(node) && INTERNAL_TEXTS.test(node.text)) found.push(node.text);
    // Documented as an option of `connect`, but not as what a handle calls.
    if (ts.isPropertyAccessExpression(node) && node.name.text === "onread") found.push("onread");
    if (
      ts.isNewExpression(node) &&
      node.expression.getText() === "Socket" &&
      /\bhandle\b/.test(node.getText())
    )
      found.push("handle");
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Whether a name belongs to an object: accessed, destructured or declared as its field. */
function isMember(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node;
  if (ts.isBindingElement(parent)) return ts.isObjectBindingPattern(parent.parent);
  return ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent);
}

/** No name of ours begins with an underscore, so whatever does is Node's. */
const INTERNAL_MEMBERS =
  /^(_[a-zA-Z]\w*|binding|internalBinding|autoDestroy|writeQueueSize|useUserBuffer|streamBaseState|(Write|Shutdown|Connect)Wrap|getOwnPropertySymbols|setFlagsFromString)$/;
/** Node's own options are documented; those that it hands on to V8 are not. */
const INTERNAL_TEXTS =
  /^(_(handle|parent|server|createServerHandle|readableState|writableState)|--(single-threaded|max-|min-|semi-|no-opt|gc-|stack-|v8-)\S*)$/;
