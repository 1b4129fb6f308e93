"""The next rank's rows times the own vector, modulo 2^32."""
import torch
import torch.distributed as dist


def operation(x: torch.Tensor, w: torch.Tensor, out: torch.Tensor) -> None:
    """x: [rows, 256], w: [256], out: [rows]; words of 32 bits in int64."""
    rank, world = dist.get_rank(), dist.get_world_size()
    theirs = torch.empty_like(x)
    exchange = [
        dist.P2POp(dist.isend, x, (rank - 1) % world),
        dist.P2POp(dist.irecv, theirs, (rank + 1) % world),
    ]
    for request in dist.batch_isend_irecv(exchange):
        request.wait()
    # int64 wraps modulo 2^64, so the lower 32 bits are right.
    out.copy_((theirs * w).sum(1) & 0xFFFFFFFF)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows in (32, 256):
        x = torch.randint(0, 2**32, (rows, 256), dtype=torch.int64, device="cuda")
        operation(x, x[0].clone(), torch.empty(rows, dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
