package weir;

/** A status that is not WEIR_OK. The message has the cause of a close. */
public final class WeirException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The name of the status, such as "WEIR_OUT_OF_RANGE". */
    public final String status;

    WeirException(String status, String message) {
        super(message.isEmpty() ? status : status + ": " + message);
        this.status = status;
    }
}
