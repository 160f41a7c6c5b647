import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "dist", "out", "cdktf.out", ".cache", "bench/node_modules"] },
  ...tseslint.configs.recommended,
  {
    files: ["**/*.ts"],
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
      "prefer-const": "error",
      "@typescript-eslint/consistent-type-imports": ["error", { prefer: "type-imports" }],
      "@typescript-eslint/no-non-null-assertion": "off",
      // `const { left, ...taken } = all` is how something is left out.
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
    },
  },
  {
    files: ["build/**", "demo/**", "proof/**", "src/cli/**", "bench/**", "main.ts"],
    rules: { "no-console": "off" },
  },
  {
    files: ["__tests__/**"],
    rules: {
      "no-restricted-imports": [
        "error",
        { name: "fast-check", message: "Import proof/kit/property.js, which has the seed of the run." },
      ],
    },
  },
  { files: ["**/*.js"], rules: { "@typescript-eslint/no-require-imports": "off" } },
);
