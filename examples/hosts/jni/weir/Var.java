package weir;

import java.lang.ref.Reference;
import java.util.Objects;

/** A variable: its newest value can always be read, and never changes in the reader's hands. */
public final class Var {
    final long var;

    public Var(double... values) {
        long created = Weir.varCreate(Objects.requireNonNull(values));
        var = created;
        Weir.CLEANER.register(this, () -> Weir.varDestroy(created));
    }

    /** The newest version. Never waits. */
    public View read() {
        try {
            return new View(Weir.varRead(var));
        } finally {
            Reference.reachabilityFence(this); // it is not destroyed during the call
        }
    }

    /** Publishes the next version, and returns its number. */
    public long assign(double... values) {
        try {
            return Weir.varAssign(var, Objects.requireNonNull(values));
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
