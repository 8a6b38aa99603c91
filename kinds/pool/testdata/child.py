"""A child of a pool: a line of JSON in, a line of JSON out, until stdin ends. Standard library only."""
import json
import sys


def count(payload):
    return {"words": len(payload["text"].split())}


def main():
    handlers = {"count.words": count}
    for line in sys.stdin:
        asked = json.loads(line)
        answer = {"id": asked["id"]}
        print("doing", asked["kind"], "attempt", asked["attempt"], file=sys.stderr, flush=True)
        try:
            answer["result"] = handlers[asked["kind"]](asked["payload"])
            answer["status"] = "ok"
        except (KeyError, TypeError, AttributeError) as fault:  # trying again would not help
            answer["status"] = "dead"
            answer["error"] = f"{type(fault).__name__}: {fault}"
        except OSError as fault:
            answer["status"] = "retry"
            answer["error"] = str(fault)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
