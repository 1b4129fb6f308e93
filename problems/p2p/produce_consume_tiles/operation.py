"""A rank scales the rows of its matrix; the next one adds its bias and transposes."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def operation(inp: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [rows, cols], scale: [rows], bias: [cols], out: [cols, rows]; 32-bit words in int64."""
    rank, world = dist.get_rank(), dist.get_world_size()
    factor = (2 * scale[:, None] + 1) & MASK
    low, high = inp & 0xFFFF, inp >> 16  # halves, so that products do not overflow
    product = (low * factor + ((high * factor & 0xFFFF) << 16)) & MASK
    received = torch.empty_like(product)
    work = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, product, (rank + 1) % world),
            dist.P2POp(dist.irecv, received, (rank - 1) % world),
        ]
    )
    for request in work:
        request.wait()
    out.copy_(((received + bias) & MASK).t())


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows, cols in ((48, 48), (96, 96)):
        inp, scale, bias = (
            torch.randint(0, 2**32, shape, dtype=torch.int64, device="cuda")
            for shape in ((rows, cols), (rows,), (cols,))
        )
        operation(inp, scale, bias, torch.empty((cols, rows), dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
