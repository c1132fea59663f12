/* Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
   Replace the functions up to `pick_stream` by calls of yours. */
#include <stdio.h>
#include <string.h>

#define MAX 8192
static struct stream { long id, turn; int urgency, incremental; } streams[MAX];
static int n_streams;
static long now; /* turn 0: nothing to send */

static struct stream *find(long id) {
    for (int i = 0; i < n_streams; i++)
        if (streams[i].id == id) return &streams[i];
    return &streams[MAX - 1];
}

static int before(const struct stream *s, const struct stream *t) {
    if (s->urgency != t->urgency) return s->urgency < t->urgency;
    if (s->incremental != t->incremental) return t->incremental;
    return s->incremental ? s->turn < t->turn : s->id < t->id;
}

static void reset(void) { n_streams = 0; }
static void open_stream(long id, int urgency, int incremental) {
    if (n_streams < MAX - 1) streams[n_streams++] = (struct stream){id, 0, urgency, incremental};
}
static void update(long id, int urgency, int incremental) {
    struct stream *s = find(id);
    if (s->turn && (s->urgency != urgency || s->incremental != incremental)) s->turn = now;
    s->urgency = urgency, s->incremental = incremental;
}
static void activate(long id) { struct stream *s = find(id); if (!s->turn) s->turn = now; }
static void deactivate(long id) { find(id)->turn = 0; }
static void close_stream(long id) { *find(id) = streams[--n_streams]; }
static void charge(long id, long bytes) { (void)bytes; find(id)->turn = now; }
static long pick_stream(void) { /* -1: none */
    struct stream *best = NULL;
    for (struct stream *s = streams; s < streams + n_streams; s++)
        if (s->turn && (!best || before(s, best))) best = s;
    return best ? best->id : -1;
}

static long number(const char *line, const char *key, long otherwise) {
    const char *found = strstr(line, key);
    if (found) sscanf(found + strlen(key), "%ld", &otherwise);
    return otherwise;
}

int main(void) {
    for (char line[1024], op[16] = ""; fgets(line, sizeof line, stdin); fflush(stdout)) {
        long id = number(line, "\"stream\":", -1);
        int urgency = (int)number(line, "\"urgency\":", 3);
        int incremental = strstr(line, "\"incremental\":true") != NULL;
        now++;
        sscanf(line, "{\"op\":\"%15[a-z]", op);
        if (!strcmp(op, "hello")) puts("{\"protocol\":\"h3sim-conformance/1\",\"name\":\"c-eps\"}");
        else if (!strcmp(op, "reset")) reset();
        else if (!strcmp(op, "open")) open_stream(id, urgency, incremental);
        else if (!strcmp(op, "update")) update(id, urgency, incremental);
        else if (!strcmp(op, "activate")) activate(id);
        else if (!strcmp(op, "deactivate")) deactivate(id);
        else if (!strcmp(op, "close")) close_stream(id);
        else if (!strcmp(op, "charge")) charge(id, number(line, "\"bytes\":", 0));
        else if (!strcmp(op, "pick") && (id = pick_stream()) >= 0) printf("{\"stream\":%ld}\n", id);
        else if (!strcmp(op, "pick")) puts("{\"stream\":null}");
    }
}
