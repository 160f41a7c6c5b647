import { readFileSync } from "node:fs";
import { relative, sep } from "node:path";
import type { Plugin } from "esbuild";
import ts from "typescript";
import { ROOT } from "../../build/paths.js";

/** Global array of counters, one for each block of the instrumented sources. */
export const HITS = "__hits";

/**
 * Counts how often each block of `src/` runs: a fuzzer keeps what reaches new ones. (Jazzer.js does the same with
 * libFuzzer after it; its native part needs a newer C library than Debian 12 has.)
 */
export function instrument(): { plugin: Plugin; blocks: () => readonly string[] } {
  const blocks: string[] = [];
  const plugin: Plugin = {
    name: "instrument",
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const file = relative(ROOT, path).split(sep).join("/");
        if (!file.startsWith("src/")) return undefined;
        const transformer = counters((line) => blocks.push(`${file}:${line}`) - 1);
        const { outputText } = ts.transpileModule(readFileSync(path, "utf8"), {
          fileName: path,
          compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
          transformers: { before: [transformer] },
        });
        return { contents: outputText, loader: "js" };
      });
    },
  };
  return { plugin, blocks: () => blocks };
}

/** @param number gives the block on a line its number */
function counters(number: (line: number) => number): ts.TransformerFactory<ts.SourceFile> {
  return (context) => (source) => {
    const { factory } = context;
    const hit = (node: ts.Node): ts.Expression => {
      const line = source.getLineAndCharacterOfPosition(node.pos < 0 ? 0 : node.getStart(source)).line + 1;
      const counter = factory.createElementAccessExpression(factory.createIdentifier(HITS), number(line));
      return factory.createPostfixIncrement(counter);
    };
    const counted = (node: ts.Expression): ts.Expression => {
      const count = hit(node);
      return factory.createParenthesizedExpression(factory.createComma(count, visit(node) as ts.Expression));
    };
    const statements = (node: ts.Node, list: readonly ts.Statement[]): ts.Statement[] => [
      factory.createExpressionStatement(hit(node)),
      ...list.map((statement) => visit(statement) as ts.Statement),
    ];
    const block = (node: ts.Statement): ts.Block =>
      factory.createBlock(statements(node, ts.isBlock(node) ? node.statements : [node]), true);

    function visit(node: ts.Node): ts.Node {
      if (ts.isIfStatement(node)) {
        const otherwise = node.elseStatement === undefined ? undefined : block(node.elseStatement);
        const condition = visit(node.expression) as ts.Expression;
        return factory.updateIfStatement(node, condition, block(node.thenStatement), otherwise);
      }
      if (ts.isConditionalExpression(node)) {
        const { questionToken, colonToken } = node;
        const condition = visit(node.condition) as ts.Expression;
        const whenTrue = counted(node.whenTrue);
        return factory.updateConditionalExpression(
          node,
          condition,
          questionToken,
          whenTrue,
          colonToken,
          counted(node.whenFalse),
        );
      }
      if (ts.isBinaryExpression(node) && SHORT_CIRCUITS.has(node.operatorToken.kind)) {
        const left = visit(node.left) as ts.Expression;
        return factory.updateBinaryExpression(node, left, node.operatorToken, counted(node.right));
      }
      if (ts.isCaseClause(node))
        return factory.updateCaseClause(
          node,
          visit(node.expression) as ts.Expression,
          statements(node, node.statements),
        );
      if (ts.isDefaultClause(node))
        return factory.updateDefaultClause(node, statements(node, node.statements));
      if (ts.isBlock(node)) return factory.updateBlock(node, statements(node, node.statements));
      // A function's own block has been visited as a block; an arrow's expression has not.
      return ts.visitEachChild(node, visit, context);
    }
    return ts.visitEachChild(source, visit, context);
  };
}

const SHORT_CIRCUITS: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
]);
