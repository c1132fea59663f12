import {greet} from "./greet.mjs";
greet();
