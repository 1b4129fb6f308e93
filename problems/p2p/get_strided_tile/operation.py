"""Every rank receives some columns of the next rank's matrix, packed row after row."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor, column: int) -> None:
    """inp: [rows, pitch], out: [rows, width]; words of 32 bits."""
    rank, world, width = dist.get_rank(), dist.get_world_size(), out.shape[1]
    tile = inp[:, column : column + width].contiguous()
    work = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, tile, (rank - 1) % world),
            dist.P2POp(dist.irecv, out, (rank + 1) % world),
        ]
    )
    for request in work:
        request.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows, pitch, column, width in ((32, 259, 3, 123), (128, 515, 130, 253)):
        inp = torch.randint(-(2**31), 2**31, (rows, pitch), dtype=torch.int32, device="cuda")
        operation(inp, torch.empty((rows, width), dtype=torch.int32, device="cuda"), column)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
