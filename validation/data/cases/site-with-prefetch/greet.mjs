export function greet() { document.title = "Hello"; }
